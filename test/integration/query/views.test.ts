import { readFileSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listQueryFiles } from '../../../src/query/files.js';
import { openSandbox } from '../../../src/query/sandbox.js';
import { RECORD_COLUMNS, VIEW_NAMES } from '../../../src/query/views.js';
import { queryFolder } from '../../fake/query-folder.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';
import { sampleMeasures } from '../../unit/run/measures/sample-measures.js';

const SAMPLES = [
  'build-mixed',
  'build-mixed-fusion',
  'compile',
  'fail-fast',
  'interrupted',
  'joined',
  'parse',
  'show',
  'stale-source',
  'test-command',
  ...LARGE_SAMPLES,
] as const;
const { dataFolder, traceIds } = queryFolder(SAMPLES, afterAll);
const before = process.cwd();
const measured = new Map(
  await Promise.all(SAMPLES.map(async (sample) => [sample, await sampleMeasures(sample)] as const)),
);
function measuresOf(sample: (typeof SAMPLES)[number]) {
  const measures = measured.get(sample);
  if (measures === undefined) throw new Error(`${sample} is not measured`);
  return measures;
}
let sandbox: DuckDBConnection;

beforeAll(async () => {
  process.chdir(`${dataFolder}/runs`);
  sandbox = await openSandbox(await listQueryFiles(dataFolder, traceIds), { memoryMegabytes: 256, threads: 2 });
});
afterAll(() => process.chdir(before));

async function rows(sql: string) {
  return (await sandbox.runAndReadAll(sql)).getRowObjectsJson();
}

describe.each(SAMPLES.map((sample, index) => [sample, traceIds[index]] as const))(
  'of the sample %s',
  (sample, traceId) => {
    it('the view of nodes says what is measured of them', async () => {
      const { nodes, invocation } = measuresOf(sample);
      const found = await rows(`SELECT unique_id, node_type, outcome, skip_reason, skip_upstream, test_outcome,
      previous_status, duration_ms::VARCHAR AS duration_ms, idle_time_ms::VARCHAR AS idle_time_ms, lifetime_ms,
      warehouse_time_ms, query_count::INTEGER AS query_count, rows_affected::VARCHAR AS rows, message IS NOT NULL AS has_message, command, is_executed
      FROM nodes WHERE trace_id = '${traceId}' ORDER BY unique_id`);
      const ms = (nano: bigint | null) => (nano === null ? null : Number(nano) / 1e6);
      const text = (value: number | null) => (value === null ? null : String(value));
      const expected = nodes.map((node) => ({
        unique_id: node.uniqueId,
        node_type: node.nodeType,
        outcome: node.outcome,
        skip_reason: node.skipReason,
        skip_upstream: node.skipUpstream,
        test_outcome: node.testOutcome,
        previous_status: node.verdict === 'canceled' ? expect.toSatisfy(() => true) : node.previousStatus,
        duration_ms: text(node.durationMs),
        idle_time_ms: text(node.idleTimeMs),
        lifetime_ms: ms(node.lifetimeNano),
        warehouse_time_ms: expect.closeTo(ms(node.warehouseTimeNano) ?? 0, 3),
        query_count: node.queryCount,
        rows: text(node.rows),
        has_message: node.message !== null,
        command: invocation.command,
        is_executed: node.isExecuted,
      }));
      expect(found).toEqual(expected.sort((a, b) => (a.unique_id < b.unique_id ? -1 : 1)));
    });

    it('the view of steps says what its summary says', async () => {
      const { invocation } = measuresOf(sample);
      expect(
        await rows(`SELECT command, status, epoch_ns(started_at)::VARCHAR AS started, failed_count, skipped_count, job
        FROM steps WHERE trace_id = '${traceId}'`),
      ).toEqual([
        {
          command: invocation.command,
          status: invocation.verdict,
          started: String(invocation.startTimeUnixNano),
          failed_count: invocation.nodeCounts.failed,
          skipped_count: invocation.nodeCounts.skipped,
          job: 'adhoc',
        },
      ]);
    });
  },
);

describe('the views', () => {
  it('of runs has one row a run, of tests what became of each', async () => {
    expect(await rows('SELECT count(*)::INTEGER AS n, sum(step_count)::INTEGER AS steps FROM runs')).toEqual([
      { n: SAMPLES.length, steps: SAMPLES.length },
    ]);
    expect(
      await rows(
        `SELECT result, count(*)::INTEGER AS n FROM tests WHERE trace_id = '${traceIds[0]}' GROUP BY 1 ORDER BY 1`,
      ),
    ).toEqual([
      { result: 'failed', n: 2 },
      { result: 'passed', n: 6 },
      { result: 'skipped', n: 1 },
      { result: 'warned', n: 1 },
    ]);
  });

  it('of queries has the SQL, and how long it took', async () => {
    const [query] = await rows("SELECT * FROM queries WHERE outcome = 'error' ORDER BY started_at LIMIT 1");
    expect(query).toMatchObject({ unique_id: 'model.shop.broken', phase: 'run', adapter_type: 'duckdb' });
    expect(String(query?.sql)).toContain('nonexistent_column');
  });

  it('of records has the columns that the Parquet files have', async () => {
    const found = await rows('DESCRIBE records');
    expect(found.map(({ column_name, column_type }) => [column_name, column_type])).toEqual([
      ...RECORD_COLUMNS,
      ['unique_id', 'VARCHAR'],
      ['parquet_file', 'VARCHAR'],
    ]);
  });

  it('have the same columns where there is no file yet', async () => {
    const empty = await openSandbox(await listQueryFiles(dataFolder, []), { memoryMegabytes: 64, threads: 1 });
    for (const view of VIEW_NAMES) {
      const described = await empty.runAndReadAll(`DESCRIBE ${view}`);
      expect(described.getRowsJson()).toEqual((await sandbox.runAndReadAll(`DESCRIBE ${view}`)).getRowsJson());
    }
  });
});

describe('what docs/reference/views.md says of the views', () => {
  const page = readFileSync(new URL('../../../docs/reference/views.md', import.meta.url), 'utf8');
  const chapter = /\n## Views\n(.*?)\n## /s.exec(page)?.[1] ?? '';
  const cells = new Map(
    Array.from(chapter.matchAll(/^\| `(\w+)` \| [^|]+ \| (.+) \|$/gm), ([, view = '', columns = '']) => [
      view,
      columns,
    ]),
  );
  const names = (text = '') => Array.from(text.matchAll(/`(\w+)`/g), ([, name = '']) => name);

  /** `a`, `b` (`values` and remarks), those of `another` without `c`, `d`, and `e` */
  function columnsOf(view: string): readonly string[] {
    const text = (cells.get(view) ?? '').replaceAll(/\([^)]*\)/g, '');
    const [whole = '', other, without] = /those of `(\w+)`(?: without (`\w+`(?:, `\w+`)*))?/.exec(text) ?? [];
    const left = names(without);
    const shared = other === undefined ? [] : columnsOf(other);
    expect(shared).toEqual(expect.arrayContaining(left));
    return [...shared.filter((name) => !left.includes(name)), ...names(text.replace(whole, ''))];
  }

  it('names each view', () => {
    expect([...cells.keys()]).toEqual(VIEW_NAMES);
  });

  it.each(VIEW_NAMES)('names every column of %s once, and no other', async (view) => {
    const found = await rows(`DESCRIBE ${view}`);
    expect([...columnsOf(view)].sort()).toEqual(found.map(({ column_name }) => String(column_name)).sort());
  });

  it('is SQL that is answered', async () => {
    const [, sql = ''] = /```sql\n(.*?)```/s.exec(chapter) ?? [];
    const statements = sql.split(';').filter((one) => one.trim() !== '');
    expect(statements).toHaveLength(3);
    for (const statement of statements) await rows(statement);
  });
});
