import { describe, expect, it } from 'vitest';
import { parseRecordLine } from '../../../../src/record/record-line.js';
import { failedSql } from '../../../../src/run/measures/failed-sql.js';
import { recordedErrors } from '../../../tool/error-runs.js';
import { logged } from '../logged-samples.js';
import { measuresOf, sampleMeasures } from './sample-measures.js';

const COMPILED = '\nwith a as (select 1)\nselect b\nfrom a\n';
const STATEMENT = `/* {"app": "dbt"} */\n\ncreate table t as (\n${COMPILED}\n);`;

describe('the SQL of a failed node', () => {
  it('of a real run is its compiled code, marked where the database saw the error', async () => {
    const { nodes } = await sampleMeasures('build-mixed');
    const broken = nodes.find(({ uniqueId }) => uniqueId === 'model.shop.broken');
    expect(broken?.failedSql).toEqual({
      ...{ kind: 'compiled', firstLine: 1, errorLine: 3 },
      text: '\n\nselect nonexistent_column from "shop"."main"."stg_orders"',
    });
    // Of nodes that did not fail nothing is kept.
    expect(
      nodes.filter(({ failedSql: sql }) => sql !== null).every(({ verdict }) => /error|failed/.test(verdict)),
    ).toBe(true);
  });

  it.each(['duckdb', 'postgres'] as const)(
    'of every real error of %s names a line that the error quotes',
    async (of) => {
      let marked = 0;
      for (const command of await measuresOf(logged(recordedErrors(of).map(parseRecordLine)))) {
        for (const { failedSql: sql, message } of command.nodes) {
          const quoted = /^ *LINE \d+: (.*)$/m.exec(message ?? '')?.[1];
          if (sql?.errorLine == null || quoted === undefined) continue;
          const line = sql.text.split('\n')[sql.errorLine - sql.firstLine];
          expect(line).toContain(quoted.replaceAll(/^\.\.\.|\.\.\.$/g, '').trim());
          marked += 1;
        }
      }
      expect(marked).toBeGreaterThan(5);
    },
  );

  it.each([
    ['DuckDB', 'Binder Error: no b\n\nLINE 6: select b\n               ^'],
    ['Snowflake', "SQL compilation error: error line 6 at position 7\ninvalid identifier 'B'"],
    ['BigQuery', 'Unrecognized name: b at [6:8]'],
    ['Databricks', 'UNRESOLVED_COLUMN (line 6, pos 7)'],
    ['the engine', 'dbt0227: No column b found\n  --> target/compiled/shop/models/t.sql:3:8'],
  ])('is marked by what %s says', (_who, message) => {
    expect(failedSql(COMPILED, STATEMENT, message)).toEqual({
      kind: 'compiled',
      text: COMPILED,
      firstLine: 1,
      errorLine: 3,
    });
  });

  it('is the statement where the error is outside of the compiled code, or that is not known', () => {
    const message = 'LINE 3: create table t as (';
    expect(failedSql(COMPILED, STATEMENT, message)).toMatchObject({ kind: 'statement', errorLine: 3 });
    expect(failedSql(null, STATEMENT, message)).toMatchObject({ kind: 'statement', errorLine: 3 });
  });

  it('has no mark where the line is not known for sure', () => {
    expect(failedSql('select b\nselect b', null, 'LINE 9: select b')).toMatchObject({ errorLine: null });
    expect(failedSql(COMPILED, STATEMENT, 'it failed')).toMatchObject({ kind: 'compiled', errorLine: null });
    expect(failedSql(COMPILED, STATEMENT, 'no b at [999:1]')).toMatchObject({ errorLine: null });
    expect(failedSql(null, null, 'LINE 1: x')).toBeNull();
  });

  it('of a megabyte is the part round the error', () => {
    const long = Array.from({ length: 50_000 }, (_, line) => `select ${line + 1}`).join('\n');
    const sql = failedSql(long, long, 'LINE 30000: select 30000');
    expect(sql?.text.length).toBeLessThanOrEqual(20_000);
    expect(sql?.text.split('\n')[(sql.errorLine ?? 0) - sql.firstLine]).toBe('select 30000');
  });
});
