import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processTree } from '../../src/core/process-tree.js';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

// Two runs that nobody named; a rule finds the job of the second.
const SQL = 'SELECT run_id, job, environment, project FROM runs ORDER BY run_id';
const ROWS = [
  [1001, 'adhoc', null, null],
  [1002, 'parsing', 'production', 'shop'],
];

let dir: string;
let data: string;
let bridge: BridgeProcess;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-query-'));
  data = join(dir, 'data');
  const config = join(dir, 'run-bridge.yaml');
  writeFileSync(
    config,
    `environments: { production: { project: shop } }
projects: { shop: {} }
jobs: { parsing: { environment: production, match: { command: "*parse*" } } }
`,
  );
  bridge = await BridgeProcess.start({ dataFolder: data, args: ['--config', config] });
  for (const sample of ['build-clean', 'parse']) {
    await sendSample(bridge.otlpUrl, sample);
    await bridge.finished(sampleTraceId(sample));
    await until('the complete run', async () => {
      const { data: runs } = (await (await ask('/api/v2/accounts/10001/runs/')).json()) as {
        data: { is_complete: boolean }[];
      };
      return runs.length > 0 && runs.every(({ is_complete }) => is_complete);
    });
  }
});
afterAll(async () => {
  await bridge?.stop();
  rmSync(dir, { recursive: true, force: true });
});

function ask(path: string, body?: unknown): Promise<Response> {
  const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
  const sending = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const headers = { authorization, 'content-type': 'application/json' };
  return fetch(bridge.webUrl + path, { headers, ...sending });
}

test('SQL over the API knows the numbers, jobs and environments of runs that nobody named', async () => {
  const answer = await ask('/api/run-bridge/v1/query', { sql: SQL });
  expect(await answer.json()).toMatchObject({ data: { rows: ROWS } });
});

test('so does SQL on the command line, while the bridge is at work', async () => {
  const { exitCode, stdout } = await runBridge(['query', '--csv', SQL, '--data-dir', data], { cwd: dir });
  expect([exitCode, stdout.trim().split(/\r?\n/).slice(1)]).toEqual([
    0,
    ['1001,adhoc,,', '1002,parsing,production,shop'],
  ]);
});

test('the command line writes a Parquet file once it is whole, and leaves what was there where it fails', async () => {
  const file = join(dir, 'runs.parquet');
  const write = (...args: string[]) =>
    runBridge(['query', '--output', 'runs.parquet', '--data-dir', data, ...args], { cwd: dir });
  expect(await write(SQL)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  const read = async () => parquetReadObjects({ file: await asyncBufferFromFile(file) });
  expect((await read()).map(({ job }) => job)).toEqual(['adhoc', 'parsing']);
  expect(await write('SELECT nonsense')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('nonsense') });
  expect(await read()).toHaveLength(2);
  const one = await write('--limit', '1', SQL);
  expect([one.exitCode, one.stderr]).toEqual([0, expect.stringContaining('more than 1 rows')]);
  expect(await read()).toHaveLength(1);
  expect(readdirSync(dir).filter((name) => name.includes('.part'))).toEqual([]);
  expect(await write('--csv', SQL)).toMatchObject({ exitCode: 2 });
});

test('no answer is larger than it may be, be it a single value', async () => {
  const answer = await ask('/api/run-bridge/v1/query', { sql: "SELECT repeat('a', 50000000)" });
  expect(answer.status).toBe(413);
  expect(await answer.text()).toContain('left(message, 1000)');
  const many = await ask('/api/run-bridge/v1/query', { sql: "SELECT repeat('\"', 1000000) FROM range(50)" });
  const text = await many.text();
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * 2 ** 20);
  expect(JSON.parse(text)).toMatchObject({ data: { row_count: 8, is_truncated: true } });
});

test('a client that gives up a query leaves no error in the log', async () => {
  const giveUp = new AbortController();
  const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
  const asking = fetch(`${bridge.webUrl}/api/run-bridge/v1/query`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({
      sql: 'SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5',
    }),
    signal: giveUp.signal,
  });
  const ended = expect(asking).rejects.toThrow();
  await until("the query's process", () => processTree(bridge.child.pid ?? 0).length > 1);
  giveUp.abort();
  await ended;
  await until('its end', () => processTree(bridge.child.pid ?? 0).length === 1);
  expect((await ask('/api/run-bridge/v1/query', { sql: SQL })).status).toBe(200);
  expect(bridge.stderr).not.toMatch(/request failed|query was stopped/);
});
