import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { type Ended, runBridge } from './run-bridge.js';

const SAMPLE = resolve(SAMPLES, 'build-clean', 'otel.jsonl');
const records = readFileSync(SAMPLE, 'utf8')
  .trim()
  .split('\n')
  .map((row): { record_type: string; trace_id: string; span_id: string } => JSON.parse(row));
const ended = records.filter(({ record_type }) => record_type === 'SpanEnd').map(({ span_id }) => span_id);

let dir: string;
let receivers: readonly [OtlpReceiver, OtlpReceiver];
let bridge: BridgeProcess | undefined;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-export-'));
  receivers = [await OtlpReceiver.listen(), await OtlpReceiver.listen()];
});
afterEach(async () => {
  await bridge?.remove();
  bridge = undefined;
  for (const receiver of receivers) receiver.close();
  rmSync(dir, { recursive: true, force: true });
});

const run = (args: readonly string[]): Promise<Ended> => runBridge(args, { cwd: dir, timeoutMs: 60_000 });

/** Configures both receivers as destinations, `first` and `second`. */
function configure(): string {
  const path = join(dir, 'run-bridge.yaml');
  const [first, second] = receivers.map(({ url }) => `{ endpoint: ${url}, signals: traces }`);
  writeFileSync(path, `destinations:\n  first: ${first}\n  second: ${second}\n`);
  return path;
}

async function serve(): Promise<BridgeProcess> {
  const args = ['--config', configure(), '--invocation-quiet', '300ms', '--event-hold', '100ms', '--parquet', 'off'];
  bridge = await BridgeProcess.start({ args, dataFolder: join(dir, 'data') });
  return bridge;
}

const got = (receiver: OtlpReceiver) => new Set(receiver.spanIds.map((ids) => ids.split(' ')[1]));
const hasAll = (receiver: OtlpReceiver) => ended.every((id) => got(receiver).has(id));
/** Forgets what came, as one that has lost its data. */
const forget = (receiver: OtlpReceiver) => receiver.requests.splice(0);

async function details(name: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${bridge?.webUrl}/readyz?verbose`);
  const report = (await response.json()) as { checks: { name: string; details: Record<string, unknown> }[] };
  return report.checks.find((check) => check.name === `export to ${name}`)?.details ?? {};
}

const sentToEnd = () =>
  until('no lag', async () => {
    const both = await Promise.all(['first', 'second'].map(details));
    return both.every(({ lagBytes, pendingRuns }) => lagBytes === 0 && pendingRuns === 0);
  });

async function taken(serving: BridgeProcess): Promise<string> {
  expect((await run(['import', SAMPLE, '--to', serving.otlpUrl])).exitCode).toBe(0);
  await until('the run at both', () => receivers.every(hasAll));
  await sentToEnd();
  return records[0]?.trace_id ?? '';
}

test('a run is sent again to the destination that is named, by the bridge that has it', async () => {
  const serving = await serve();
  const traceId = await taken(serving);
  receivers.forEach(forget);
  const { exitCode, stdout, stderr } = await run(['export', '1001', '--to', 'second', '--data-dir', 'data']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/sends run 1001 to second again/);
  await until('the run again', () => hasAll(receivers[1]));
  await sentToEnd();
  expect(receivers[1].spanIds).toHaveLength(new Set(receivers[1].spanIds).size);
  expect(receivers[0].requests).toEqual([]);
  // Twice in a row, by its trace id, to all.
  for (const _ of [1, 2]) expect((await run(['export', traceId, '--data-dir', 'data'])).exitCode).toBe(0);
  await until('the run at both', () => receivers.every(hasAll));
  await sentToEnd();
});

test('a record that was given up comes again with its run, once the destination takes it', async () => {
  const bad = ended[30] ?? '';
  const isIn = (request: ExportRequest) =>
    request.signal === 'traces' &&
    request.resources.some(({ scopes }) => scopes.some((one) => one.records.some(({ spanId }) => spanId === bad)));
  receivers[0].answerTo = (request) => (isIn(request) ? { status: 400 } : undefined);
  const serving = await serve();
  expect((await run(['import', SAMPLE, '--to', serving.otlpUrl])).exitCode).toBe(0);
  await until('the refusal', async () => (await details('first')).refusedCount === 1);
  await sentToEnd();
  expect(ended.filter((id) => !got(receivers[0]).has(id))).toEqual([bad]);
  receivers[0].answerTo = undefined;
  expect((await run(['export', '1001', '--to', 'first', '--data-dir', 'data'])).exitCode).toBe(0);
  await until('all of it', () => hasAll(receivers[0]));
});

test('without a bridge the command sends it, also to a destination that was configured after the run', async () => {
  expect((await run(['import', SAMPLE, '--data-dir', 'data'])).exitCode).toBe(0);
  configure();
  const { exitCode, stdout } = await run(['export', '1001', '--data-dir', 'data', '--config', 'run-bridge.yaml']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'sent run 1001 to first, second again\n' });
  expect(receivers.every(hasAll)).toBe(true);
});

test('says what is wrong: no such run, no such destination, none at all', async () => {
  expect((await run(['import', SAMPLE, '--data-dir', 'data'])).exitCode).toBe(0);
  expect(await run(['export', '1001', '--data-dir', 'data'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('There is no destination: set OTEL_EXPORTER_OTLP_ENDPOINT'),
  });
  await serve();
  expect(await run(['export', '99999', '--data-dir', 'data'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no run 99999 is known'),
  });
  expect(await run(['export', '1001', '--to', 'third', '--data-dir', 'data'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('There is no destination third; there is first, second.'),
  });
  expect(await run(['export', 'x', '--data-dir', 'data'])).toMatchObject({ exitCode: 2 });
});

test("the button on a run's page sends it again", async () => {
  const serving = await serve();
  await taken(serving);
  const { stdout } = await run(['open', '--print', '--data-dir', 'data']);
  const link = await fetch(stdout.trim(), { redirect: 'manual' });
  const cookie = (link.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const page = await (await fetch(`${serving.webUrl}/runs/1001`, { headers: { cookie } })).text();
  expect(page).toContain('action="/runs/1001/export"');
  expect(page).toContain('<option value="second">');
  receivers.forEach(forget);
  const answer = await fetch(`${serving.webUrl}/runs/1001/export`, {
    method: 'POST',
    headers: { cookie, origin: serving.webUrl, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'destination=first',
  });
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('is sent again');
  await until('the run again', () => hasAll(receivers[0]));
  expect(receivers[1].requests).toEqual([]);
});
