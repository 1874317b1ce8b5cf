import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { askBridge } from '../../src/cli/bridge/bridge.js';
import { HttpStepRegistry } from '../../src/cli/bridge/http-step-registry.js';
import { systemClock } from '../../src/core/clock.js';
import { parseTraceId, type TraceId } from '../../src/record/telemetry-record.js';
import { stepStart } from '../contract/step-registry.contract.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const RUN = 'fail-fast';
const traceId = parseTraceId(
  JSON.parse(readFileSync(join(SAMPLES, RUN, 'otel.jsonl'), 'utf8').split('\n')[0] ?? '').trace_id,
) as TraceId;

const started: BridgeProcess[] = [];
const books: HttpStepRegistry[] = [];
afterEach(async () => {
  for (const registry of books.splice(0)) registry.close();
  await Promise.all(started.splice(0).map((bridge) => bridge.remove()));
});

async function serve(dataFolder?: string): Promise<BridgeProcess> {
  const args = ['--log-format', 'json'];
  const bridge = await BridgeProcess.start(dataFolder === undefined ? { args } : { args, dataFolder });
  started.push(bridge);
  return bridge;
}

function bookAt(url: string): HttpStepRegistry {
  const registry = new HttpStepRegistry(url, { clock: systemClock, signal: new AbortController().signal });
  books.push(registry);
  return registry;
}

/** The logs alone: neither of the roots ends, as after a kill. */
async function sendLogs(url: string): Promise<void> {
  const folder = join(SAMPLES, RUN, 'otlp');
  for (const file of readdirSync(folder).filter((name) => name.includes('logs'))) {
    const headers = { 'content-type': 'application/x-protobuf' };
    const answer = await fetch(`${url}/v1/logs`, { method: 'POST', headers, body: readFileSync(join(folder, file)) });
    expect(answer.status).toBe(200);
  }
}

function logLines(bridge: BridgeProcess): Record<string, unknown>[] {
  return bridge.stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
}

test('a bridge is found by both of its ports', async () => {
  const bridge = await serve();
  const found = {
    version: expect.stringMatching(/^\d/),
    exportsTo: [],
    hasSignInLinks: true,
    otlpUrl: bridge.otlpUrl,
    webUrl: bridge.webUrl,
    pagesUrl: bridge.webUrl,
  };
  expect(await askBridge(bridge.otlpUrl)).toEqual(found);
  expect(await askBridge(bridge.webUrl)).toEqual(found);
});

test('a run is judged at once by the signal that killed its command, and its job stands in run.json and in the log', async () => {
  const bridge = await serve();
  const registry = bookAt(bridge.otlpUrl);
  await registry.register(stepStart('a', { job: 'nightly', runKey: 'night 7', startedUnixMs: 0 }));
  await registry.attach('a', traceId);
  await sendLogs(bridge.otlpUrl);
  await registry.end('a', { kind: 'killed', signal: 'SIGKILL' }, Date.now());
  await until('run.json', () => readdirSync(bridge.runFolder(traceId)).includes('run.json'));
  expect(JSON.parse(readFileSync(join(bridge.runFolder(traceId), 'run.json'), 'utf8'))).toMatchObject({
    state: 'finished',
    job: { name: 'nightly', run_id: 1001, run_key: 'night 7' },
    steps: [
      {
        verdict: 'error',
        status_message: expect.stringMatching(/^The command was killed by SIGKILL; /),
        step: { id: 'a', index: 1, ending: { kind: 'killed', signal: 'SIGKILL' } },
      },
    ],
  });
  const finished = await until('the end of the run', () =>
    logLines(bridge).find(({ msg }) => msg === 'finished a run'),
  );
  expect(finished).toMatchObject({ traceId, job: 'nightly', run: 1001, step: '1' });
  expect(await runBridge(['finish', 'night 7', '--data-dir', bridge.dataFolder], { cwd: '/tmp' })).toMatchObject({
    exitCode: 0,
    stderr: 'run 1001 ("night 7", job nightly) is finished: 1 step, which failed\n',
  });
});

test('a command goes on while its bridge is killed and started anew, and its end is taken then', async () => {
  const bridge = await serve();
  const registry = bookAt(bridge.webUrl);
  await registry.register(stepStart('a', { runKey: 'night', startedUnixMs: 0 }));
  await registry.attach('a', traceId);
  await sendLogs(bridge.otlpUrl);
  await bridge.stop('SIGKILL');
  const again = await serve(bridge.dataFolder);
  const other = bookAt(again.webUrl);
  await other.end('a', { kind: 'exited', exitCode: 2 }, Date.now());
  await until('run.json', () => readdirSync(again.runFolder(traceId)).includes('run.json'));
  expect(JSON.parse(readFileSync(join(again.runFolder(traceId), 'run.json'), 'utf8'))).toMatchObject({
    steps: [{ verdict: 'error', status_message: expect.stringMatching(/^The command ended with exit code 2; /) }],
  });
  expect(await other.finish('night')).toMatchObject({ kind: 'finished', run: { stepCount: 1, failedStepCount: 1 } });
});
