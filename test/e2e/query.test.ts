import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
