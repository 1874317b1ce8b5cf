import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_SQL_LENGTH, SqlTokenizer, sanitizeSql, sqlDialectOf } from '../../../src/redaction/sanitize-sql.js';

const clean = (sql: string, adapterType?: string) => sanitizeSql(sql, sqlDialectOf(adapterType)).text;

describe('a statement without its values', () => {
  it.each([
    ["select 'a', 'it''s', E'x\\'y' from t", 'select ? from t'],
    ["select $$it's$$ as a, $tag$ $$ ' $tag$ as b", 'select ? as a, ? as b'],
    ['select 1, -2.5, .5, 1e-9, 0xFF, 1_000 as n1', 'select ?, -? as n1'],
    ['select a1, "t 1"."c ""2""" from x2', 'select a1, "t 1"."c ""2""" from x2'],
    ["select a -- it's secret\nfrom t /* one /* two */ secret */ where b", 'select a\nfrom t where b'],
    ["where d > date '2020-01-01' and x in (1, 2, 'three')", 'where d > date ? and x in (?)'],
    ["select N'a', X'ff', u&'d!0061' from t", 'select ? from t'],
    ['select `it` from `a b`', 'select `it` from `a b`'],
    ["select a[1], {'k': 2}", 'select a[?], {?: ?}'],
    ['select $1 where a = 5', 'select $? where a = ?'],
  ])('in PostgreSQL and DuckDB: %s', (sql, expected) => {
    expect(clean(sql, 'duckdb')).toBe(expected);
  });

  it.each([
    ['bigquery', 'select "it\'s", r"\\d", """a "b" c""", b\'x\' from `p.d.t` # why', 'select ? from `p.d.t`'],
    ['bigquery', "select '''it's''' as a", 'select ? as a'],
    ['databricks', "select 'it\\'s', \"x\" from t", 'select ? from t'],
    ['snowflake', "select 'it\\'s' as a, \"Col\" from t", 'select ? as a, "Col" from t'],
    ['sqlserver', "select [it's], 'a' from [t 1]", "select [it's], ? from [t 1]"],
    ['mysql', "select 'a' # it's\nfrom t", 'select ?\nfrom t'],
  ])('in %s: %s', (adapterType, sql, expected) => {
    expect(clean(sql, adapterType)).toBe(expected);
  });

  it('takes double quotes for strings where the database is not known', () => {
    expect(clean('select "secret" from t')).toBe('select ? from t');
  });

  it.each([
    ["select 'a\\' , secret , 'b' from t", 'an escape that may be one'],
    ["select '''it's secret", 'three quotes that may be one'],
    ["select a # it's secret", 'a sign that may begin a comment'],
  ])('redacts the rest behind a doubt: %s', (sql) => {
    expect(clean(sql)).not.toContain('secret');
  });

  it.each([
    ["select a, 'it's secret' from t", 'select a, ?'],
    ["select 'x', secret, 'unclosed", 'select ?'],
    ['select a, "unclosed from t', 'select a, ?'],
    ['select a, $x$ secret', 'select a, ?'],
    ['select a /* secret', 'select a'],
  ])('keeps only what stands before the first literal of a malformed one: %s', (sql, expected) => {
    expect(clean(sql, 'duckdb')).toBe(expected);
  });

  it.each([
    ['select 1', 'SELECT'],
    ['/* app */ create or replace temporary table t as select 1', 'CREATE TABLE'],
    ['with a as (select 1) select * from a', 'SELECT'],
    ['insert into t values (1)', 'INSERT'],
    ['drop view if exists v', 'DROP VIEW'],
    ["'no verb'", undefined],
    ['mystery of sql select', undefined],
  ])('tells the operation of %s', (sql, operation) => {
    expect(sanitizeSql(sql, sqlDialectOf('duckdb')).operation).toBe(operation);
  });

  it('cuts very long ones off', () => {
    const text = clean(`select '${'x'.repeat(MAX_SQL_LENGTH * 2)}'`, 'duckdb');
    expect(text).toBe('select ?…');
  });
});

describe('tokens', () => {
  const dialects = ['duckdb', 'bigquery', 'snowflake', 'sqlserver', 'mysql', 'other'];
  const piece = fc.constantFrom(
    "'",
    '"',
    '`',
    '$',
    '$a$',
    '\\',
    '--',
    '/*',
    '*/',
    '\n',
    ' ',
    '#',
    '[',
    ']',
    'E',
    'r',
    'a',
    '1',
    '.',
    ',',
    '😀',
  );

  it('cover any text without gaps', () => {
    fc.assert(
      fc.property(fc.array(piece), fc.constantFrom(...dialects), (pieces, adapterType) => {
        const sql = pieces.join('');
        const tokens = new SqlTokenizer(sql, sqlDialectOf(adapterType));
        let end = 0;
        while (tokens.next()) {
          expect(tokens.start).toBe(end);
          expect(tokens.end).toBeGreaterThan(tokens.start);
          expect(tokens.end).toBeLessThanOrEqual(sql.length);
          end = tokens.end;
        }
        expect(end).toBe(sql.length);
      }),
    );
  });

  it('never show what a properly quoted string holds', () => {
    const inner = fc.array(piece.filter((text) => text !== '\\')).map((pieces) => `secret${pieces.join('')}secret`);
    fc.assert(
      fc.property(inner, fc.constantFrom('duckdb', 'postgres', 'snowflake', 'sqlserver'), (text, adapterType) => {
        const sql = `select x, '${text.replaceAll("'", "''")}' as y from t where z = '${text.replaceAll("'", "''")}'`;
        expect(clean(sql, adapterType)).toBe('select x, ? as y from t where z = ?');
      }),
    );
  });
});
