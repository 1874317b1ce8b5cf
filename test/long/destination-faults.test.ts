import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, OtlpReceiver } from '../fake/otlp-receiver.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';

const RUN = 'build-clean';
/** Runs that are sent while a destination is ill. */
const RUN_COUNT = 12;
const folder = join(SAMPLES, RUN, 'otlp');
const bodies = readdirSync(folder)
  .sort()
  .map((file) => ({ signal: file.includes('traces') ? 'traces' : 'logs', bytes: readFileSync(join(folder, file)) }));
const sampleId: string = JSON.parse(
  readFileSync(join(SAMPLES, RUN, 'otel.jsonl'), 'utf8').split('\n')[0] ?? '',
).trace_id;
const spanCount = readFileSync(join(SAMPLES, RUN, 'otel.jsonl'), 'utf8').match(/"record_type":"SpanEnd"/g)?.length ?? 0;

let bridge: BridgeProcess | undefined;
let ill: OtlpReceiver;
let well: OtlpReceiver;
beforeEach(async () => {
  [ill, well] = await Promise.all([OtlpReceiver.listen(), OtlpReceiver.listen()]);
});
afterEach(async () => {
  await bridge?.remove();
  bridge = undefined;
  ill.close();
  well.close();
});

async function serve(illSettings: readonly string[] = []): Promise<BridgeProcess> {
  bridge = await serveTo([ill.url, well.url], illSettings);
  return bridge;
}

/** Starts a bridge with two destinations. @param settings of the first one */
async function serveTo(
  [first, second]: readonly [string, string],
  settings: readonly string[],
): Promise<BridgeProcess> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'run-bridge-faults-'));
  const config = join(dataFolder, 'run-bridge.yaml');
  const all = [`endpoint: ${first}`, 'timeout: 500ms', ...settings].join(', ');
  writeFileSync(config, `destinations:\n  ill: { ${all} }\n  well: { endpoint: ${second} }\n`);
  const args = ['--config', config, '--invocation-quiet', '300ms', '--event-hold', '100ms', '--parquet', 'off'];
  return await BridgeProcess.start({ args, dataFolder });
}

/** Sends the sample under another trace id. */
async function sendRun(to: BridgeProcess, number: number): Promise<void> {
  const traceId = (0xf000 + number).toString(16).padStart(32, 'a');
  for (const { signal, bytes } of bodies) {
    const response = await fetch(`${to.otlpUrl}/v1/${signal}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf' },
      body: withTraceId(bytes, traceId),
    });
    expect(response.status).toBe(200);
  }
}

function withTraceId(bytes: Buffer, traceId: string): Buffer {
  const [from, to] = [Buffer.from(sampleId, 'hex'), Buffer.from(traceId, 'hex')];
  const changed = Buffer.from(bytes);
  for (let at = changed.indexOf(from); at !== -1; at = changed.indexOf(from, at + 16)) to.copy(changed, at);
  return changed;
}

async function sendRuns(to: BridgeProcess): Promise<void> {
  for (let number = 0; number < RUN_COUNT; number += 1) await sendRun(to, number);
}

/** What `/readyz?verbose` says of a destination. */
async function details(of: BridgeProcess, name: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${of.webUrl}/readyz?verbose`);
  const report = (await response.json()) as { checks: { name: string; details: Record<string, unknown> }[] };
  return report.checks.find((check) => check.name === `export to ${name}`)?.details ?? {};
}

const hasAll = (receiver: OtlpReceiver, runs = RUN_COUNT) => new Set(receiver.spanIds).size === runs * spanCount;

const FAULTS: readonly (readonly [string, () => () => Answer])[] = [
  ['answers 503', () => () => ({ status: 503 })],
  ['asks to wait with 429', () => () => ({ status: 429, headers: { 'retry-after': '1' } })],
  ['never answers', () => () => ({ isSilent: true })],
  ['closes the connection in the middle of a body', () => () => ({ isCutOff: true })],
  ['answers after longer than anybody waits', () => () => ({ delayMs: 700, status: 500 })],
  [
    'fails one request in five',
    () => {
      let count = 0;
      return () => {
        count += 1;
        return count % 5 === 0 ? { status: 500 } : {};
      };
    },
  ],
];

describe('a destination that', () => {
  test.each(FAULTS)(
    '%s holds up neither answers nor another destination, and gets everything in the end',
    async (_, fault) => {
      ill.answer = fault();
      const serving = await serve();
      await sendRuns(serving);
      await until('everything at the healthy destination', () => hasAll(well));
      ill.answer = () => ({});
      await until('everything at the ill destination', () => hasAll(ill));
      expect(new Set(ill.spanIds)).toEqual(new Set(well.spanIds));
      await until('no lag', async () => (await details(serving, 'ill')).lagBytes === 0);
      expect(await details(serving, 'ill')).toMatchObject({
        givenUpRunCount: 0,
        refusedCount: 0,
        oldestUnsentSeconds: 0,
      });
    },
  );

  test('is down is known by its lag, and gets everything when it is back', async () => {
    const { port } = ill;
    const serving = await serve();
    ill.close();
    await sendRuns(serving);
    await until('everything at the healthy destination', () => hasAll(well));
    const isWaiting = ({ state, lastError }: Record<string, unknown>) =>
      state === 'waiting' && String(lastError).includes('ECONNREFUSED');
    await until('the lag', async () => {
      const found = await details(serving, 'ill');
      const isAll = found.pendingRuns === RUN_COUNT && Number(found.lagBytes) > RUN_COUNT * 100_000;
      // Between two attempts it waits, during one it does not.
      return isAll && Number(found.oldestUnsentSeconds) > 0 && isWaiting(found);
    });
    expect((await fetch(`${serving.webUrl}/readyz`)).status).toBe(200);
    ill = await OtlpReceiver.listen(port);
    await until('everything at the ill destination', () => hasAll(ill));
    expect(new Set(ill.spanIds)).toEqual(new Set(well.spanIds));
  });

  test('refuses what it gets is not asked again, and that is counted', async () => {
    ill.answer = () => ({ status: 400, body: 'no such tenant' });
    const serving = await serve();
    await sendRuns(serving);
    await until('everything at the healthy destination', () => hasAll(well));
    await until(
      'the refusals',
      async () => Number((await details(serving, 'ill')).refusedCount) >= RUN_COUNT * spanCount,
    );
    await until('no lag', async () => (await details(serving, 'ill')).lagBytes === 0);
    ill.answer = () => ({});
    await sendRun(serving, 1_000);
    await until('what comes next', () => new Set(ill.spanIds).size === spanCount);
    expect(serving.stderr.match(/refused an export/g)?.length).toBeLessThanOrEqual(2);
  });

  test('rejects a part, or answers what nobody understands, is done with it', async () => {
    ill.answer = () => ({ body: Buffer.from('this is no protobuf at all') });
    const serving = await serve(['protocol: http/json']);
    await sendRun(serving, 0);
    await until('the first run', () => hasAll(ill, 1));
    ill.answer = () => ({ body: '{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}' });
    await sendRun(serving, 1);
    await until('the rejection', async () => Number((await details(serving, 'ill')).rejectedCount) >= 3);
    await until('no lag', async () => (await details(serving, 'ill')).lagBytes === 0);
    expect(ill.spanIds).toHaveLength(2 * spanCount);
  });

  test('takes nothing for too long loses its backlog, which is counted and logged, while the runs stay', async () => {
    ill.answer = () => ({ status: 503 });
    const serving = await serve(['max-backlog-age: 2s']);
    await sendRun(serving, 0);
    await until('the end of patience', async () => Number((await details(serving, 'ill')).givenUpRunCount) > 0);
    await until('words', () => serving.stderr.includes('older than max-backlog-age; the runs are still on disk'));
    await until('no lag', async () => (await details(serving, 'ill')).lagBytes === 0);
    ill.answer = () => ({});
    // What comes while it is still paused may wait too long as well.
    await until('the end of its pause', async () => (await details(serving, 'ill')).state === 'idle');
    await sendRun(serving, 1);
    await until('what comes next', () => hasAll(ill, 1));
    await until('both runs at the other', () => hasAll(well, 2));
    expect(serving.traceIds()).toHaveLength(2);
  });
});
