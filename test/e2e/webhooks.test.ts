import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { HttpStepRegistry } from '../../src/cli/bridge/http-step-registry.js';
import { systemClock } from '../../src/core/clock.js';
import { STEP_ATTRIBUTE } from '../../src/record/attributes.js';
import { stepStart } from '../contract/step-registry.contract.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { SentRun } from '../tool/sent-run.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const ENGINE = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const missingSchema = z.object({ count: z.number(), paths: z.array(z.string()), reason: z.string() });
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

test('a run under exec is reported: started, errored, and completed once its telemetry can be downloaded', async () => {
  await exec(process.execPath, ENGINE, resolve(SAMPLES, 'build-mixed'));
  const failed = await until('the run that failed', () =>
    receiver.deliveries.find(({ eventType }) => eventType === 'job.run.errored'),
  );
  const { runId } = failed.data;
  const completed = await until('its end', () =>
    receiver.deliveries.find(({ eventType, data }) => eventType === 'job.run.completed' && data.runId === runId),
  );
  const own = receiver.deliveries.filter(({ data }) => data.runId === runId);
  expect(own.map(({ eventType, data }) => [eventType, data.runStatus, data.runStatusCode])).toEqual([
    ['job.run.started', 'Running', 3],
    ['job.run.errored', 'Errored', 20],
    ['job.run.completed', 'Errored', 20],
  ]);
  expect(receiver.deliveries.every(({ isSigned }) => isSigned)).toBe(true);
  const sizes = Object.entries(completed.artifacts);
  expect(sizes.filter(([path]) => path.endsWith('.parquet'))).toHaveLength(1);
  expect(sizes.every(([, bytes]) => bytes > 0)).toBe(true);
});

test('who notify-on-archive names is a webhook from the first one on, and is notified of one that is gone', async () => {
  const args = ['--webhook-allow', 'loopback', '--notify-on-archive', 'mailto:ops@example.com'];
  const told = await BridgeProcess.start({ args });
  const gone = createHttpServer((_request, response) => response.writeHead(410).end());
  gone.listen(0, '127.0.0.1');
  await once(gone, 'listening');
  try {
    const token = readFileSync(join(told.dataFolder, 'admin-token'), 'utf8').trim();
    const { port } = gone.address() as AddressInfo;
    await subscribe(told, token, 'a', `http://127.0.0.1:${port}/`);
    await runBridge(['exec', '--to', told.otlpUrl, '--', process.execPath, '-e', ''], { cwd: folder });
    const command = ['--data-dir', told.dataFolder];
    const id = await until('the webhook of the address', async () => {
      const { stdout } = await runBridge(['webhook', 'list', ...command], { cwd: folder });
      return /^wsu_\w+(?= {2}archiving of webhooks {2}email )/m.exec(stdout)?.[0];
    });
    await until('its notice', async () => {
      const { stdout } = await runBridge(['webhook', 'events', id, ...command], { cwd: folder });
      return stdout.includes('webhook.archived');
    });
  } finally {
    await told.remove();
    gone.close();
  }
});

test('a chat with a message for each owner gets the first failure while the command goes on, and the rest when it ends', async () => {
  const titles: string[] = [];
  const chat = createHttpServer(async (request, response) => {
    titles.push((await text(request)).split('\\n')[0] ?? '');
    response.end('ok');
  });
  chat.listen(0, '127.0.0.1');
  await once(chat, 'listening');
  const lines = readFileSync(join(SAMPLES, 'build-mixed', 'otel.jsonl'), 'utf8').split(/(?<=\n)/);
  // The first test fails here, the second one and a model after it.
  const half =
    1 +
    lines.findIndex(
      (line) => line.includes('NodeProcessed') && line.includes('ut_wrong') && line.includes('"SpanEnd"'),
    );
  const command = new SpawnedCommand(['pipe', '--to', bridge.otlpUrl], { cwd: folder });
  try {
    const { port } = chat.address() as AddressInfo;
    const made = await fetch(`${bridge.webUrl}/api/run-bridge/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}` },
      body: JSON.stringify({
        ...{ type: 'slack', name: 'chat', client_url: `http://127.0.0.1:${port}/`, per_owner: true },
        event_types: ['job.run.errored', 'job.run.completed'],
      }),
    });
    expect(made.status).toBe(201);
    command.child.stdin.write(lines.slice(0, half).join(''));
    await until('the first failure', () => titles.length > 0);
    expect(titles).toEqual([expect.stringContaining('adhoc is failing: unit test ut_wrong')]);
    expect(events()).not.toContain('errored Errored');
    command.child.stdin.end(lines.slice(half).join(''));
    await until('the rest', () => titles.length > 1);
    await until('the end', () => events().includes('completed Errored'));
    expect(titles.slice(1)).toEqual([expect.stringMatching(/adhoc failed: model broken: .* \(\+1\)/)]);
  } finally {
    await command.stop('SIGKILL');
    chat.close();
  }
});

test('a run is over only when all that it left can be downloaded, however long that takes', async () => {
  writeFileSync(join(folder, 'dbt_project.yml'), 'name: shop');
  const write = `
    const { mkdirSync, writeFileSync } = require('node:fs');
    mkdirSync('target/run', { recursive: true });
    writeFileSync('target/run_results.json', '{}');
    for (let model = 0; model < 300; model += 1) writeFileSync('target/run/' + model + '.sql', 'select 1');`;
  await runBridge(['exec', '--to', bridge.otlpUrl, '--flush-timeout', '1ms', '--', process.execPath, '-e', write], {
    cwd: folder,
  });
  const completed = await until('the end', () =>
    receiver.deliveries.find(({ eventType }) => eventType === 'job.run.completed'),
  );
  expect(Object.keys(completed.artifacts)).toHaveLength(301);
  expect(completed.data).not.toHaveProperty('missingArtifacts');
});

test('a run whose exec is killed while it uploads is over without what is missing, which its event and the API name', async () => {
  writeFileSync(join(folder, 'dbt_project.yml'), 'name: shop');
  const count = 500;
  const write = `
    const { mkdirSync, writeFileSync } = require('node:fs');
    mkdirSync('target/run', { recursive: true });
    for (let model = 0; model < ${count}; model += 1) writeFileSync('target/run/' + model + '.sql', 'select 1');`;
  const killed = new SpawnedCommand(['exec', '--to', bridge.otlpUrl, '--', process.execPath, '-e', write], {
    cwd: folder,
  });
  const kept = join(bridge.dataFolder, 'artifacts');
  await until('the first artifact', () => {
    if (killed.child.exitCode !== null) throw new Error(`exec was not killed: ${killed.stderr}`);
    return existsSync(kept) && readdirSync(kept, { recursive: true }).some((name) => name.toString().endsWith('.sql'));
  });
  expect(await killed.stop('SIGKILL')).toBeNull();
  expect(events()).not.toContain('completed Success');
  // Whoever comes next takes in what was left, and says that no more will come.
  expect((await exec('true')).exitCode).toBe(0);
  const completed = await until('the end', () =>
    receiver.deliveries.find(
      ({ eventType, data }) => eventType === 'job.run.completed' && data.missingArtifacts !== undefined,
    ),
  );
  const { count: missing, paths, reason } = missingSchema.parse(completed.data.missingArtifacts);
  expect(missing + Object.keys(completed.artifacts).length).toBe(count);
  expect(paths).toHaveLength(Math.min(missing, 20));
  expect(paths.filter((path) => path in completed.artifacts)).toEqual([]);
  expect(reason).toBe('they were not uploaded');
  expect(completed.data.runStatus).toBe('Success');
  const run = await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/${completed.data.runId}`, {
    headers: { authorization: `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}` },
  });
  expect(await run.json()).toMatchObject({
    data: { steps: [{ artifacts: { state: 'incomplete', expected_count: count, reason } }] },
  });
  expect(readdirSync(join(folder, '.local/share/run-bridge/spool'))).toEqual([]);
});

test('an import notifies nobody of runs that had ended, unless it is asked to', async () => {
  const file = (sample: string) => resolve(SAMPLES, sample, 'otel.jsonl');
  const options = { cwd: folder };
  expect((await runBridge(['import', file('build-mixed'), '--to', bridge.otlpUrl], options)).exitCode).toBe(0);
  await runBridge(['import', file('build-clean'), '--to', bridge.otlpUrl, '--notify'], options);
  await until('the end', () => receiver.deliveries.some(({ eventType }) => eventType === 'job.run.completed'));
  expect(events()).toEqual(['started Running', 'completed Success']);
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

test.each([
  ['', []],
  [' whose job is named', ['--job', 'nightly']],
] as const)('without a server, a command%s has started before it sends anything', async (_what, options) => {
  await bridge.stop();
  const env = { RUN_BRIDGE_WEBHOOK_ALLOW: 'loopback' };
  const args = ['exec', '--data-dir', bridge.dataFolder, ...options, '--', 'cat'];
  const command = new SpawnedCommand(args, { cwd: folder, env });
  await until('its start', () => receiver.deliveries.length > 0);
  expect(receiver.deliveries[0]).toMatchObject({ eventType: 'job.run.started', data: { toolVersion: '' } });
  command.child.stdin.end();
  expect(await command.ended()).toBe(0);
  expect(events()).toEqual(['started Running']);
  expect(command.stderr).toBe('');
});

test('a run whose telemetry is there before the command is registered is reported once', async () => {
  await sendMarked(bridge.otlpUrl, 'late');
  await until('a run of its own', async () => (await countRuns()) === 1);
  const registry = new HttpStepRegistry(bridge.otlpUrl, { clock: systemClock, signal: new AbortController().signal });
  const { runId } = await registry.register(stepStart('late', { startedUnixMs: Date.now() }));
  await registry.end('late', { kind: 'exited', exitCode: 0 }, Date.now());
  await until('the end', () => receiver.deliveries.some(({ eventType }) => eventType === 'job.run.completed'));
  expect(events()).toEqual(['started Running', 'completed Success']);
  expect(receiver.deliveries.map(({ data }) => data.runId)).toEqual([String(runId), String(runId)]);
});

test.each([
  ['answers 101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', false],
  ['closes without an answer', '', true],
] as const)('an endpoint that %s changes nothing of what a command ends with', async (_what, bytes, isClosed) => {
  let posts = 0;
  const endpoint = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      posts += 1;
      if (isClosed) socket.end();
      else socket.write(bytes);
    });
  }).listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const { id } = await subscribe(
    bridge,
    token,
    'hostile',
    `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`,
  );
  const test = await fetch(`${bridge.webUrl}/api/v3/accounts/10001/webhooks/subscription/${id}/test`, {
    headers: { authorization: `Token ${token}` },
    signal: AbortSignal.timeout(5_000),
  });
  expect(await test.json()).toMatchObject({
    data: { verification_error: expect.any(String), verification_status_code: isClosed ? '0' : '101' },
  });
  await bridge.stop();
  const env = { RUN_BRIDGE_DATA_DIR: bridge.dataFolder, RUN_BRIDGE_WEBHOOK_ALLOW: 'loopback' };
  const ended = await runBridge(['exec', '--', process.execPath, ENGINE, resolve(SAMPLES, 'build-mixed')], {
    cwd: folder,
    env,
  });
  expect(ended.exitCode).toBe(0);
  expect(posts).toBeGreaterThanOrEqual(2);
  endpoint.close();
});

test('no secret is in the log', async () => {
  await exec('true');
  await until('the end', () => receiver.deliveries.length === 2);
  const key = readFileSync(join(bridge.dataFolder, 'webhook-key'), 'utf8').trim();
  expect(bridge.stderr).not.toContain(key);
  expect(bridge.stderr).not.toContain('whsec_');
});

async function countRuns(): Promise<number> {
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const headers = { authorization: `Token ${token}` };
  const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/`, { headers });
  return z.object({ data: z.array(z.unknown()) }).parse(await answer.json()).data.length;
}

/** Sends a sample past `exec`, with the step in its resource as the engine puts it there. */
async function sendMarked(url: string, stepId: string): Promise<void> {
  const mark = message(1, message(1, message(1, STEP_ATTRIBUTE), message(2, message(1, stepId))));
  for (const { signal, bytes } of new SentRun().bodies) {
    const headers = { 'content-type': 'application/x-protobuf' };
    const body = Buffer.concat(groupsOf(bytes).map((group) => message(1, group, mark)));
    expect((await fetch(`${url}/v1/${signal}`, { method: 'POST', headers, body })).status).toBe(200);
  }
}

/** A field of a protobuf message that holds bytes. */
function message(field: number, ...parts: readonly (Buffer | string)[]): Buffer<ArrayBuffer> {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const length: number[] = [];
  for (let rest = content.length; length.length === 0 || rest > 0; rest >>>= 7)
    length.push((rest & 127) | (rest > 127 ? 128 : 0));
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length]), content]);
}

/** The contents of a request's only field: telemetry of one resource each. */
function groupsOf(request: Buffer): readonly Buffer[] {
  const groups: Buffer[] = [];
  for (let at = 0; at < request.length; ) {
    let length = 0;
    at += 1;
    for (let shift = 0; ; shift += 7) {
      const byte = request[at++] ?? 0;
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    groups.push(request.subarray(at, at + length));
    at += length;
  }
  return groups;
}
