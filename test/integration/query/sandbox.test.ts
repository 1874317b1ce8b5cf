import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listQueryFiles } from '../../../src/query/files.js';
import type { QueryMessage } from '../../../src/query/protocol.js';
import { checkStatement, openSandbox, runStatement } from '../../../src/query/sandbox.js';
import { queryFolder } from '../../fake/query-folder.js';

const { dataFolder, traceIds } = queryFolder(['build-mixed', 'build-clean'], afterAll);
const [own, passthrough] = traceIds;
const runs = join(dataFolder, 'runs');
const before = process.cwd();
let sandbox: DuckDBConnection;

beforeAll(async () => {
  if (own === undefined) throw new Error('no run');
  process.chdir(runs);
  sandbox = await openSandbox(await listQueryFiles(dataFolder, [own]), { memoryMegabytes: 256, threads: 1 });
});
afterAll(() => process.chdir(before));

/** What reads, writes, loads or sets something, in whatever way. */
const HOSTILE: readonly string[] = [
  "SELECT * FROM read_text('/etc/passwd')",
  "SELECT * FROM read_blob('/proc/self/environ')",
  "SELECT * FROM read_csv('/etc/passwd')",
  "SELECT * FROM read_json('/etc/passwd')",
  "SELECT * FROM sniff_csv('/etc/passwd')",
  "SELECT * FROM '/etc/passwd.csv'",
  "FROM '/etc/*.csv'",
  "SELECT * FROM glob('/etc/*')",
  "SELECT * FROM glob('*/*')",
  "SELECT * FROM read_parquet('*/*.parquet')",
  `SELECT * FROM read_parquet('${passthrough}/telemetry.parquet')`,
  `SELECT * FROM '${passthrough}/telemetry.parquet'`,
  `SELECT * FROM '${runs}/${passthrough}/telemetry.parquet'`,
  `SELECT * FROM '${own}/../${passthrough}/telemetry.parquet'`,
  `SELECT * FROM parquet_metadata('${passthrough}/telemetry.parquet')`,
  `SELECT * FROM parquet_schema('${runs}/${passthrough}/telemetry.parquet')`,
  `SELECT * FROM read_text('${passthrough}/run.json')`,
  `SELECT * FROM read_blob('${own}/telemetry.jsonl')`,
  "SELECT * FROM read_parquet('https://example.org/x.parquet')",
  "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
  "SELECT (SELECT content FROM read_text('/etc/passwd'))",
  "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
  "SELECT * FROM runs WHERE job IN (SELECT content FROM read_text('/etc/passwd'))",
  "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
  "SELECT * FROM query_table('/etc/passwd')",
  "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''/etc/passwd'')'))",
  "COPY (SELECT 1) TO '/tmp/run-bridge-query-out.csv'",
  `COPY (SELECT 1) TO '${passthrough}/telemetry.parquet'`,
  "COPY t FROM '/etc/passwd'",
  "EXPORT DATABASE '/tmp/run-bridge-query-out'",
  "IMPORT DATABASE '/tmp/run-bridge-query-out'",
  "ATTACH '/tmp/run-bridge-query-out.db'",
  `ATTACH '${dataFolder}/state.db' (TYPE sqlite)`,
  'INSTALL httpfs',
  'INSTALL sqlite FROM community',
  'LOAD httpfs',
  "LOAD '/tmp/x.duckdb_extension'",
  "SET memory_limit = '100GB'",
  'SET threads = 64',
  'SET enable_external_access = true',
  "SET allowed_paths = ['/etc/passwd']",
  "SET allowed_directories = ['/']",
  'SET lock_configuration = false',
  'RESET lock_configuration',
  'PRAGMA threads = 64',
  "PRAGMA profile_output = '/tmp/run-bridge-query-out'",
  "SELECT getenv('PATH')",
  "CALL enable_logging(storage = 'file', storage_config = {'path': '/tmp/run-bridge-query-out'}); SELECT 1",
  'CREATE PERSISTENT SECRET s (TYPE s3)',
];

/** What does no harm outside, but is no question either, or could overwrite what may be read. */
const NOT_ASKING: readonly string[] = [
  `COPY (SELECT 1 AS a) TO '${own}/telemetry.parquet'`,
  `EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '${own}/telemetry.parquet'`,
  "CALL enable_profiling(save_location = '/tmp/run-bridge-query-out')",
  "SELECT * FROM enable_profiling(save_location = '/tmp/run-bridge-query-out')",
  "SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': '/tmp/run-bridge-query-out'})",
  `SELECT * FROM read_blob('${own}/telemetry.parquet')`,
  `SELECT * FROM read_parquet('${own}/telemetry.parquet')`,
  "ATTACH ':memory:' AS other",
  'CREATE TABLE t AS SELECT 1',
  'CREATE OR REPLACE VIEW runs AS SELECT 1',
  'DROP VIEW runs',
  'SET VARIABLE x = 1',
  'BEGIN',
  'CHECKPOINT',
  'PREPARE p AS SELECT 1',
  'PRAGMA enable_profiling',
  'EXPLAIN SELECT 1',
  'SELECT 1; SELECT 2',
  'SELECT 1; DROP VIEW runs',
  '',
  '  -- nothing',
];

describe('a query', () => {
  it.each([...HOSTILE, ...NOT_ASKING])('cannot be: %s', async (sql) => {
    await expect(checkStatement(sandbox, sql).then((statement) => statement.runAndReadAll())).rejects.toThrow();
  });

  it('is refused by the database itself, too, where it reaches for files, settings or extensions', async () => {
    const got: string[] = [];
    for (const sql of HOSTILE.filter((sql) => !sql.includes('json_execute') && !sql.startsWith('CALL'))) {
      await sandbox.runAndReadAll(sql).then(
        () => got.push(sql),
        () => {},
      );
    }
    expect(got).toEqual([]);
  });

  it('left nothing behind, and its files as they were', () => {
    const parquet = (run: string) =>
      readFileSync(join(runs, `${run}/telemetry.parquet`))
        .subarray(0, 4)
        .toString();
    expect([own, passthrough].map((run) => parquet(run ?? ''))).toEqual(['PAR1', 'PAR1']);
    expect(['/tmp/run-bridge-query-out', '/tmp/run-bridge-query-out.csv'].filter(existsSync)).toEqual([]);
  });

  it.each([
    'SELECT * FROM runs',
    'FROM nodes',
    'VALUES (1)',
    'TABLE tests',
    'DESCRIBE queries',
    'SHOW TABLES',
    'SUMMARIZE steps',
    'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n',
    'SELECT unnest(trace_ids) FROM runs',
    "PIVOT tests ON result IN ('passed', 'failed') USING count(*) GROUP BY command",
    "SELECT attributes.json_payload->>'$.sql' FROM records, range(2) LIMIT 3",
    'SELECT * FROM records;',
  ])('may be: %s', async (sql) => {
    const result = await (await checkStatement(sandbox, sql)).runAndReadAll();
    expect(result.currentRowCount).toBeGreaterThan(0);
  });

  it('sees the runs that it was given and no others', async () => {
    const ids = await sandbox.runAndReadAll(
      'SELECT DISTINCT trace_id FROM records UNION SELECT trace_id FROM steps UNION SELECT trace_id FROM nodes',
    );
    expect(ids.getRowsJson()).toEqual([[own]]);
  });

  it('gives no more bytes than the limit, and says so where not even a row finds room', async () => {
    const given = async (maxResultBytes: number) => {
      const messages: QueryMessage[] = [];
      const sql = "SELECT repeat('x', 600) FROM range(10)";
      await runStatement(sandbox, sql, { maxRows: null, maxResultBytes }, async (message) => {
        messages.push(message);
      });
      return messages.flatMap((message) => (message.type === 'rows' ? message.rows : [])).length;
    };
    expect([await given(1_300), await given(1_000_000)]).toEqual([2, 10]);
    await expect(given(600)).rejects.toMatchObject({ name: 'QueryError', code: 'tooLarge' });
  });

  it('gives integers as numbers while they are exact, and times as texts in UTC', async () => {
    const messages: QueryMessage[] = [];
    const sql =
      "SELECT 12::BIGINT, 2::HUGEINT ** 70, 1.5, NULL, [1, 2], TIMESTAMPTZ '2026-01-01 00:00:00+02', 9007199254740993";
    await runStatement(sandbox, sql, { maxRows: 1, maxResultBytes: null }, async (message) => {
      messages.push(message);
    });
    expect(messages[1]).toMatchObject({
      rows: [[12, 2 ** 70, '1.5', null, [1, 2], '2025-12-31 22:00:00+00', '9007199254740993']],
    });
  });
});
