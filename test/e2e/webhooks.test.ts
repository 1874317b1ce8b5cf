import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const ENGINE = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
let bridge: BridgeProcess;
let receiver: FetchingReceiver;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-webhooks-'));
  bridge = await BridgeProcess.start({ args: ['--webhook-allow', 'loopback', '--log-format', 'json'] });
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  receiver = await FetchingReceiver.open(bridge, token);
});
afterEach(async () => {
  await bridge.remove();
  await receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

const exec = (...command: readonly string[]) =>
  runBridge(['exec', '--to', bridge.otlpUrl, '--', ...command], { cwd: folder });
const events = () => receiver.deliveries.map(({ eventType, data }) => `${eventType.slice(8)} ${data.runStatus}`);

test('a run under exec is told of: started, errored, and completed once its telemetry can be downloaded', async () => {
  await exec(process.execPath, ENGINE, resolve(SAMPLES, 'build-mixed'));
  await until('the end', () => receiver.deliveries.some(({ eventType }) => eventType === 'job.run.completed'));
  // The stand-in's records are old and have no mark of the step, so their run is one of its own for a while.
  const runId = receiver.deliveries.at(-1)?.data.runId;
  const own = receiver.deliveries.filter(({ data }) => data.runId === runId);
  expect(own.map(({ eventType, data }) => [eventType, data.runStatus, data.runStatusCode])).toEqual([
    ['job.run.started', 'Running', 3],
    ['job.run.errored', 'Errored', 20],
    ['job.run.completed', 'Errored', 20],
  ]);
  expect(receiver.deliveries.every(({ isSigned }) => isSigned)).toBe(true);
  const sizes = Object.entries(receiver.deliveries.at(-1)?.artifacts ?? {});
  expect(sizes.filter(([path]) => path.endsWith('.parquet'))).toHaveLength(1);
  expect(sizes.every(([, bytes]) => bytes > 0)).toBe(true);
});

test('a command that dies without a word has errored, and one that succeeds has not', async () => {
  await exec('sh', '-c', 'exit 3');
  await exec('true');
  await until('both ends', () => receiver.deliveries.length === 5);
  expect(events()).toEqual([
    'started Running',
    'errored Errored',
    'completed Errored',
    'started Running',
    'completed Success',
  ]);
});

test('no secret is in the log', async () => {
  await exec('true');
  await until('the end', () => receiver.deliveries.length === 2);
  const key = readFileSync(join(bridge.dataFolder, 'webhook-key'), 'utf8').trim();
  expect(bridge.stderr).not.toContain(key);
  expect(bridge.stderr).not.toContain('whsec_');
});
