import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { type Answer, OtlpReceiver } from '../fake/otlp-receiver.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';

const RUN = 'build-clean';
const MINUTE_MS = 60_000;
const folder = join(SAMPLES, RUN, 'otlp');
const bodies = readdirSync(folder)
  .sort()
  .map((file) => ({ signal: file.includes('traces') ? 'traces' : 'logs', bytes: readFileSync(join(folder, file)) }));
const rows = readFileSync(join(SAMPLES, RUN, 'otel.jsonl'), 'utf8')
  .trim()
  .split('\n');
const records = rows.map((row): { record_type: string; trace_id: string; span_id: string } => JSON.parse(row));
const sampleId = records[0]?.trace_id ?? '';
const ended = records.filter(({ record_type }) => record_type === 'SpanEnd').map(({ span_id }) => span_id);
const logCount = records.filter(({ record_type }) => record_type === 'LogRecord').length;

let bridge: BridgeProcess | undefined;
let receiver: OtlpReceiver;
beforeEach(async () => {
  receiver = await OtlpReceiver.listen();
});
afterEach(async () => {
  await bridge?.remove();
  bridge = undefined;
  receiver.close();
});

async function serve(settings: readonly string[] = [], dataFolder?: string): Promise<BridgeProcess> {
  const data = dataFolder ?? mkdtempSync(join(tmpdir(), 'run-bridge-answers-'));
  const config = join(data, 'run-bridge.yaml');
  const all = [`endpoint: ${receiver.url}`, ...settings].join(', ');
  writeFileSync(config, `destinations:\n  ill: { ${all} }\n`);
  const args = ['--config', config, '--invocation-quiet', '300ms', '--event-hold', '100ms', '--parquet', 'off'];
  bridge = await BridgeProcess.start({ args, dataFolder: data });
  return bridge;
}

const traceIdOf = (number: number) => (0xf000 + number).toString(16).padStart(32, 'a');

/** Sends the sample as a run of its own. */
async function sendRun(to: BridgeProcess, number: number): Promise<void> {
  const [from, traceId] = [Buffer.from(sampleId, 'hex'), Buffer.from(traceIdOf(number), 'hex')];
  for (const { signal, bytes } of bodies) {
    const body = Buffer.from(bytes);
    for (let at = body.indexOf(from); at !== -1; at = body.indexOf(from, at + 16)) traceId.copy(body, at);
    await post(to, signal, 'application/x-protobuf', body);
  }
}

async function post(to: BridgeProcess, signal: string, type: string, body: Buffer | string): Promise<void> {
  const response = await fetch(`${to.otlpUrl}/v1/${signal}`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  });
  expect(response.status).toBe(200);
}

async function details(): Promise<Record<string, unknown>> {
  const response = await fetch(`${bridge?.webUrl}/readyz?verbose`);
  expect(response.status).toBe(200);
  const report = (await response.json()) as { checks: { name: string; details: Record<string, unknown> }[] };
  return report.checks.find((check) => check.name === 'export to ill')?.details ?? {};
}

/** Spans in a request; none of log records. */
function spansIn(request: ExportRequest) {
  if (request.signal !== 'traces') return [];
  return request.resources.flatMap((resource) => resource.scopes.flatMap((scope) => scope.records));
}

/** Trace and span ids in a request. */
const idsIn = (request: ExportRequest) => spansIn(request).map(({ traceId, spanId }) => `${traceId} ${spanId}`);

const idsOf = (number: number) => ended.map((spanId) => `${traceIdOf(number)} ${spanId}`);
const lacking = (number: number) => {
  const got = new Set(receiver.spanIds);
  return idsOf(number).filter((id) => !got.has(id));
};
const settled = () =>
  until(
    'no lag, and nothing under way',
    async () => {
      const { lagBytes, state } = await details();
      return lagBytes === 0 && state !== 'sending';
    },
    MINUTE_MS,
  );

describe('a receiver that refuses what is too large', () => {
  test.each<readonly [string, Answer]>([
    ['with 413', { status: 413 }],
    ["with a Collector's 400", { status: 400, body: 'http: request body too large' }],
    ['with the words of gRPC behind it', { status: 500, body: 'received message larger than max (5000 vs. 4000)' }],
  ])(
    '%s gets it in parts, all of it',
    async (_, answer) => {
      receiver.answerTo = (_request, body) => (body.length > 20_000 ? answer : undefined);
      const serving = await serve();
      await sendRun(serving, 1);
      await until('every span', () => lacking(1).length === 0, MINUTE_MS);
      await until('every log record', () => receiver.logBodies.length >= logCount, MINUTE_MS);
      await settled();
      expect(receiver.requests.some((request) => request.answer === answer)).toBe(true);
      expect(await details()).toMatchObject({ refusedCount: 0, rejectedCount: 0 });
    },
    2 * MINUTE_MS,
  );

  test(
    'even alone is denied that one record, which is counted',
    async () => {
      const huge = idsOf(1)[40] ?? '';
      receiver.answerTo = (request) => (idsIn(request).includes(huge) ? { status: 413 } : undefined);
      const serving = await serve(['signals: traces']);
      await sendRun(serving, 1);
      await settled();
      expect(lacking(1)).toEqual([huge]);
      expect(await details()).toMatchObject({ refusedCount: 1 });
    },
    2 * MINUTE_MS,
  );
});

describe('a receiver that lets nothing in for a while', () => {
  test.each([401, 403, 404, 405, 407, 421, 301, 302, 308])(
    'with %i gets everything when it does again, and is shown as failing until then',
    async (status) => {
      receiver.answer = () => ({ status, headers: { location: 'http://elsewhere.example/v1/traces' } });
      const serving = await serve();
      await sendRun(serving, 1);
      await until('its state', async () => {
        const { state, lastError } = await details();
        return state === 'waiting' && String(lastError).includes(`status ${status}`);
      });
      expect(serving.stderr).toContain('the destination lets nothing in');
      // In between it is tried, and is sending for that time.
      const isWaiting = /run_bridge_destination_state\{destination="ill",state="waiting"\} 1/;
      await until('the metric', async () => isWaiting.test(await (await fetch(`${serving.webUrl}/metrics`)).text()));
      await sendRun(serving, 2);
      receiver.answer = () => ({});
      await until('every span', () => lacking(1).length + lacking(2).length === 0, MINUTE_MS);
      await until('every log record', () => receiver.logBodies.length >= 2 * logCount, MINUTE_MS);
      await settled();
      // The end of a run that was quiet is still to be taken down.
      await until('rest', async () => (await details()).state === 'idle');
      expect(await details()).toMatchObject({ refusedCount: 0 });
    },
    2 * MINUTE_MS,
  );

  test('which is well again just as it is asked whether it is gets its log records, too', async () => {
    receiver.answer = () => ({ status: 404 });
    receiver.answerTo = ({ resources }) => {
      if (resources.length > 0) return undefined;
      receiver.answer = () => ({});
      return {};
    };
    const serving = await serve();
    await sendRun(serving, 1);
    await until('every span', () => lacking(1).length === 0);
    await until('every log record', () => receiver.logBodies.length >= logCount);
    expect(serving.stderr).not.toContain('the destination takes no logs');
  });

  test.each([404, 415, 501])(
    'that has taken logs, and answers %i to them for a while, gets them later',
    async (status) => {
      const serving = await serve();
      await sendRun(serving, 1);
      await until('log records of the first run', () => receiver.logBodies.length >= logCount, MINUTE_MS);
      let denials = 0;
      receiver.answer = (signal) => {
        if (signal === 'traces' || denials >= 3) return {};
        denials += 1;
        return { status };
      };
      await sendRun(serving, 2);
      await until('log records of both runs', () => receiver.logBodies.length >= 2 * logCount, MINUTE_MS);
      await settled();
      expect(denials).toBe(3);
      expect(await details()).toMatchObject({ refusedCount: 0, sentLogCount: 2 * logCount });
    },
    2 * MINUTE_MS,
  );

  test('takes no logs where it takes spans and answers 404 to logs alone', async () => {
    receiver.answer = (signal) => (signal === 'logs' ? { status: 404 } : {});
    const serving = await serve();
    await sendRun(serving, 1);
    await until('every span', () => lacking(1).length === 0);
    await settled();
    expect(serving.stderr).toContain('the destination takes no logs');
  });
});

describe('a request that a receiver never takes', () => {
  test.each([
    ['fails with 500', 500],
    ['fails with 507', 507],
    ['is refused with 400', 400],
    ['is refused with 422', 422],
    ['is refused with 409', 409],
  ])(
    'as it %s is halved until one record is alone, while other runs go on',
    async (_, status) => {
      const poisoned = [idsOf(1)[0] ?? '', idsOf(1).at(-1) ?? '', idsOf(3)[50] ?? ''];
      receiver.answerTo = (request) => {
        const ids = idsIn(request);
        return poisoned.some((id) => ids.includes(id)) ? { status } : undefined;
      };
      const serving = await serve();
      for (const number of [1, 2, 3]) await sendRun(serving, number);
      await until('the other run', () => lacking(2).length === 0, MINUTE_MS);
      await settled();
      expect([...lacking(1), ...lacking(3)]).toEqual(poisoned);
      expect(await details()).toMatchObject({ refusedCount: 3, state: 'idle', givenUpRunCount: 0 });
      await sendRun(serving, 4);
      await until('what comes after it', () => lacking(4).length === 0, MINUTE_MS);
    },
    2 * MINUTE_MS,
  );

  test(
    'is not given up while nothing is taken at all, also across a restart',
    async () => {
      receiver.answer = () => ({ status: 500 });
      const serving = await serve();
      await sendRun(serving, 1);
      const singles = () =>
        receiver.requests.filter((request) => request.signal === 'traces' && request.body.length < 20_000).length;
      await until('halves', () => singles() > 4, MINUTE_MS);
      await until('the next wait', async () => (await details()).state === 'waiting');
      expect(await details()).toMatchObject({ refusedCount: 0 });
      await serving.stop('SIGKILL');
      const again = await serve([], serving.dataFolder);
      await until('further attempts', async () => Number((await details()).failedAttemptCount) > 6, MINUTE_MS);
      receiver.answer = () => ({});
      await until('every span', () => lacking(1).length === 0, MINUTE_MS);
      await sendRun(again, 2);
      await until('the next run', () => lacking(2).length === 0, MINUTE_MS);
      await settled();
      expect(await details()).toMatchObject({ refusedCount: 0 });
    },
    3 * MINUTE_MS,
  );
});

describe('telemetry of other services', () => {
  const passthrough = (number: number, count: number) => {
    const spans = Array.from({ length: count }, (_, index) => ({
      traceId: traceIdOf(number).replace(/^a/, 'b'),
      spanId: (0x1000 * number + index + 1).toString(16).padStart(16, 'c'),
      name: `GET /${number}/${index}`,
      startTimeUnixNano: '1700000000000000000',
      endTimeUnixNano: '1700000000000000001',
    }));
    return JSON.stringify({
      resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: 'web' }, spans }] }],
    });
  };
  const send = (to: BridgeProcess, number: number, count: number) =>
    post(to, 'traces', 'application/json', passthrough(number, count));
  const names = () => new Set(receiver.spanNames);
  const isIn = (name: string, request: ExportRequest) => spansIn(request).some((span) => span.name === name);

  test.each([
    ['http/protobuf', 413],
    ['http/json', 413],
    ['http/protobuf', 400],
    ['http/protobuf', 500],
  ])(
    'is sent in parts over %s where it is answered %i whole, but for the one that is never taken',
    async (protocol, status) => {
      const bad = 'GET /2/7';
      receiver.answerTo = (request) => {
        const spans = spansIn(request);
        return isIn(bad, request) || (status === 413 && spans.length > 10) ? { status } : undefined;
      };
      const serving = await serve([`protocol: ${protocol}`]);
      await send(serving, 1, 10);
      await send(serving, 2, 40);
      await send(serving, 3, 1);
      await until('the last', () => names().has('GET /3/0'), MINUTE_MS);
      await until('all but one', () => names().size === 50, MINUTE_MS);
      expect(names().has(bad)).toBe(false);
    },
    2 * MINUTE_MS,
  );

  test.each([401, 404, 308])(
    'waits while the receiver answers %i',
    async (status) => {
      receiver.answer = () => ({ status });
      const serving = await serve();
      await send(serving, 1, 3);
      await until('an attempt', () => receiver.requests.length > 0);
      receiver.answer = () => ({});
      await until('all of it', () => names().size === 3, MINUTE_MS);
    },
    2 * MINUTE_MS,
  );

  test(
    'of which one message always fails does not wait for it',
    async () => {
      receiver.answerTo = (request) => (isIn('GET /1/0', request) ? { status: 500 } : undefined);
      const serving = await serve();
      await send(serving, 1, 1);
      await send(serving, 2, 1);
      await until('the other', () => names().has('GET /2/0'), MINUTE_MS);
      await until('the count', async () => (await details()).refusedCount === 1, MINUTE_MS);
      await send(serving, 3, 1);
      await until('the next', () => names().has('GET /3/0'), MINUTE_MS);
    },
    2 * MINUTE_MS,
  );
});
