import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { frame, GrpcClient, LOGS_PATH, TRACES_PATH } from '../fake/grpc-client.js';
import { type SampleBody, sampleBodies, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const RUN = 'build-mixed';
const PROTOBUF = 'application/x-protobuf';
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
let kafka: KafkaServer;
let folder: string;
const ended: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  kafka = await KafkaServer.start();
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-journal-test-'));
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(async () => {
  await kafka.remove();
  rmSync(folder, { recursive: true, force: true });
});

const EQUAL_TRACE = 'ab'.repeat(16);
const EQUAL_COUNT = 6_000;
/** 2 MB of log records of one trace, every third of which is like 99 others all over the request. */
const EQUAL_LOGS = {
  resourceLogs: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'dbt-fusion' } }] },
      scopeLogs: [
        {
          scope: { name: 'dbt-fusion' },
          logRecords: Array.from({ length: EQUAL_COUNT }, (_, index) => {
            const second = 1_700_000_000 + (index % 3 === 0 ? index % 60 : index);
            return {
              timeUnixNano: `${second}000000000`,
              traceId: EQUAL_TRACE,
              spanId: 'cd'.repeat(8),
              severityNumber: 9,
              severityText: 'INFO',
              body: { stringValue: `line ${second} ${'x'.repeat(300)}` },
              attributes: [
                { key: 'event_type', value: { stringValue: 'v1.public.events.fusion.log.LogMessage' } },
                { key: 'number', value: { intValue: String(index) } },
              ],
            };
          }),
        },
      ],
    },
  ],
};

interface Topics {
  readonly group: string;
  readonly traces: string;
  readonly logs: string;
  /** The lines of a configuration file that name them, to be written (`journal`) or read (`sources`). */
  readonly file: (section: 'journal' | 'sources') => string;
}

/** Topics and a group that no other test has. */
async function createTopics(
  test: string,
  partitions = 3,
  configs: Readonly<Record<string, string>> = {},
): Promise<Topics> {
  const [traces, logs] = [`${test}_spans`, `${test}_logs`];
  await kafka.createTopics([traces, logs], partitions, configs);
  const names = [`brokers: ${kafka.broker}`, `group-id: ${test}`, `traces-topic: ${traces}`, `logs-topic: ${logs}`];
  const file = (section: 'journal' | 'sources') => {
    const path = join(folder, `${test}-${section}.yaml`);
    writeFileSync(path, [`${section}:`, '  kafka:', ...names.map((line) => `    ${line}`), ''].join('\n'));
    return path;
  };
  return { group: test, traces, logs, file };
}

async function start(config: string, ...args: readonly string[]): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args: ['--config', config, ...args] });
  ended.push(() => bridge.remove());
  return bridge;
}

const startReceiver = (topics: Topics) => start(topics.file('journal'), '--role', 'receive');
const startReader = (topics: Topics) => start(topics.file('sources'));

const health = async ({ webUrl }: BridgeProcess) => {
  const response = await fetch(`${webUrl}/readyz?verbose`);
  return { status: response.status, text: await response.text() };
};
const isWriting = async (bridge: BridgeProcess) => /"state":"writing"/.test((await health(bridge)).text);

const logLines = (bridge: BridgeProcess, run: string): readonly string[] => {
  const path = join(bridge.runFolder(sampleTraceId(run)), 'telemetry.jsonl');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
};
/** Spans and log records come over two topics, so their order among each other is not what it was. */
const sortedLines = (bridge: BridgeProcess, run: string) => [...logLines(bridge, run)].sort();

/** What a bridge has of the run when the engine sends it itself. */
async function direct(run: string): Promise<readonly string[]> {
  const bridge = await BridgeProcess.start();
  ended.push(() => bridge.remove());
  await sendSample(bridge.otlpUrl, run);
  await bridge.finished(sampleTraceId(run));
  return sortedLines(bridge, run);
}

function post(
  { otlpUrl }: BridgeProcess,
  { signal, body }: Pick<SampleBody, 'signal' | 'body'>,
  headers: Readonly<Record<string, string>> = { 'content-type': PROTOBUF },
): Promise<Response> {
  return fetch(`${otlpUrl}/v1/${signal}`, { method: 'POST', headers, body: new Uint8Array(body) });
}

/** A receiver takes a run from its sender in one of these ways. */
const WAYS: readonly (readonly [string, (bridge: BridgeProcess, body: SampleBody) => Promise<unknown>])[] = [
  ['protobuf', async (bridge, body) => expect((await post(bridge, body)).status).toBe(200)],
  [
    'JSON',
    async (bridge, { signal, body, ...rest }) => {
      const json = Buffer.from(codecs.json.encode(codecs.protobuf.decode(signal, body)));
      const answer = await post(bridge, { ...rest, signal, body: json }, { 'content-type': 'application/json' });
      expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    },
  ],
  [
    'gzip',
    async (bridge, { body, ...rest }) => {
      const headers = { 'content-type': PROTOBUF, 'content-encoding': 'gzip' };
      expect((await post(bridge, { ...rest, body: gzipSync(body) }, headers)).status).toBe(200);
    },
  ],
  [
    'gRPC',
    async (bridge, { signal, body }) => {
      const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
      const answer = await client.call(frame(body), signal === 'traces' ? TRACES_PATH : LOGS_PATH);
      client.destroy();
      expect(answer.code).toBe(0);
    },
  ],
];

describe('a run-bridge that only receives, with Kafka behind it', () => {
  it.each(WAYS)('gives the bridge that reads its topics the records that the engine sent (%s)', async (way, send) => {
    const topics = await createTopics(`way_${way}`);
    const receiver = await startReceiver(topics);
    const reader = await startReader(topics);
    for (const body of sampleBodies(RUN)) await send(receiver, body);
    await reader.finished(sampleTraceId(RUN));
    const expected = await direct(RUN);
    await until('all records', () => logLines(reader, RUN).length === expected.length);
    expect(sortedLines(reader, RUN)).toEqual(expected);
    // It keeps nothing itself.
    expect(readdirSync(receiver.dataFolder)).toEqual([]);
    expect(await receiver.stop()).toBe(0);
  });

  it('cuts a request that is larger than the topic takes, and keys every message by its trace', async () => {
    const topics = await createTopics('large', 2);
    const receiver = await startReceiver(topics);
    const spans = sampleBodies('big-build').filter(({ signal }) => signal === 'traces');
    const body = Buffer.concat(spans.map((one) => one.body));
    expect(body.length).toBeGreaterThan(2 * 2 ** 20);
    expect((await post(receiver, { signal: 'traces', body })).status).toBe(200);
    const count = Math.ceil(body.length / 1_000_000);
    const messages = await kafka.firstMessages(topics.traces, count);
    expect(new Set(messages.map(({ key }) => key))).toEqual(new Set([sampleTraceId('big-build')]));
    expect(new Set(messages.map(({ partition }) => partition)).size).toBe(1);
    expect(Math.max(...messages.map(({ byteCount }) => byteCount))).toBeLessThan(1_048_588);
    const metrics = await (await fetch(`${receiver.webUrl}/metrics`)).text();
    expect(metrics).toContain(`run_bridge_journal_written_messages_total{topic="${topics.traces}"} ${count}`);

    const reader = await startReader(topics);
    for (const one of sampleBodies('big-build').filter(({ signal }) => signal === 'logs')) await post(receiver, one);
    const expected = await direct('big-build');
    await until('all records', () => logLines(reader, 'big-build').length === expected.length);
    expect(sortedLines(reader, 'big-build')).toEqual(expected);
  });

  it('cuts for a topic that takes less than usual, and says which setting a single large record needs', async () => {
    const topics = await createTopics('small', 1, { 'max.message.bytes': '30000' });
    const receiver = await startReceiver(topics);
    for (const body of sampleBodies(RUN)) expect((await post(receiver, body)).status).toBe(200);
    const reader = await startReader(topics);
    const expected = await direct(RUN);
    await until('all records', () => logLines(reader, RUN).length === expected.length);
    expect(sortedLines(reader, RUN)).toEqual(expected);

    const record = { traceId: 'ab'.repeat(16), body: { stringValue: 'x'.repeat(40_000) } };
    const body = Buffer.from(JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] }));
    const answer = await post(receiver, { signal: 'logs', body }, { 'content-type': 'application/json' });
    expect(answer.status).toBe(413);
    expect(await answer.text()).toMatch(/more than the topic small_logs takes; max\.message\.bytes/);
    expect((await health(receiver)).status).toBe(200);
  });

  it.each([
    ['protobuf', {}],
    ['json', {}],
    ['protobuf', { 'max.message.bytes': '50000' }],
  ] as const)(
    'keeps equal log records as often as a request has them, whatever it is cut to and however often it comes (%s, %o)',
    async (encoding, configs) => {
      const topics = await createTopics(`equal_${encoding}_${Object.keys(configs).length}`, 1, configs);
      const json = Buffer.from(JSON.stringify(EQUAL_LOGS));
      const body = encoding === 'json' ? json : Buffer.from(codecs.protobuf.encode(codecs.json.decode('logs', json)));
      const headers = { 'content-type': encoding === 'json' ? 'application/json' : PROTOBUF };
      const linesOf = (bridge: BridgeProcess) => {
        const path = join(bridge.runFolder(EQUAL_TRACE), 'telemetry.jsonl');
        return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n').sort() : [];
      };
      const single = await BridgeProcess.start();
      ended.push(() => single.remove());
      expect((await post(single, { signal: 'logs', body }, headers)).status).toBe(200);
      // They wait for the name of their span before they are written.
      await until('the log', () => linesOf(single).length === EQUAL_COUNT);

      const receiver = await startReceiver(topics);
      for (let time = 0; time < 2; time += 1) {
        expect((await post(receiver, { signal: 'logs', body }, headers)).status).toBe(200);
      }
      const reader = await startReader(topics);
      await until(
        'every message',
        async () => (await kafka.lag(topics.group, [topics.logs])) === 0 && linesOf(reader).length > 0,
        60_000,
      );
      await until('all records', () => linesOf(reader).length >= EQUAL_COUNT);
      expect(linesOf(reader)).toEqual(linesOf(single));
    },
  );

  it("passes on what the path of a sender's endpoint says, and cuts its requests as all others", async () => {
    const topics = await createTopics('paths', 2, { 'max.message.bytes': '60000' });
    const receiver = await startReceiver(topics);
    const reader = await startReader(topics);
    const path = '/job/n%C3%A4chtlich/project/a%2Fb';
    for (const { signal, body } of sampleBodies(RUN)) {
      const init = { method: 'POST', headers: { 'content-type': PROTOBUF }, body: new Uint8Array(body) };
      expect((await fetch(`${receiver.otlpUrl}${path}/v1/${signal}`, init)).status).toBe(200);
      expect((await fetch(`${receiver.otlpUrl}/job/a/job/b/v1/${signal}`, init)).status).toBe(400);
    }
    await reader.finished(sampleTraceId(RUN));
    const expected = await direct(RUN);
    await until('all records', () => logLines(reader, RUN).length === expected.length);
    expect(sortedLines(reader, RUN)).toEqual(expected);
    const resources = readFileSync(join(reader.runFolder(sampleTraceId(RUN)), 'resources.jsonl'), 'utf8');
    expect(new Set(resources.match(/"run_bridge.(job|environment|project)":"[^"]*"/g))).toEqual(
      new Set(['"run_bridge.job":"nächtlich"', '"run_bridge.project":"a/b"']),
    );
  });

  it('cuts a request with several traces, so that each run comes to one partition', async () => {
    const topics = await createTopics('traces', 4);
    const receiver = await startReceiver(topics);
    const runs = ['build-mixed', 'fail-fast', 'parse', 'stale-source'];
    for (const signal of ['traces', 'logs'] as const) {
      // Concatenated requests are one request.
      const bodies = runs.flatMap(sampleBodies).filter((one) => one.signal === signal);
      expect((await post(receiver, { signal, body: Buffer.concat(bodies.map(({ body }) => body)) })).status).toBe(200);
    }
    const reader = await startReader(topics);
    for (const run of runs) {
      const expected = await direct(run);
      await until(`all of ${run}`, () => logLines(reader, run).length === expected.length);
      expect(sortedLines(reader, run)).toEqual(expected);
    }
    for (const topic of [topics.traces, topics.logs]) {
      const messages = await kafka.firstMessages(topic, runs.length);
      expect(new Set(messages.map(({ key }) => key))).toEqual(new Set(runs.map(sampleTraceId)));
    }
  });

  it('answers 503 with Retry-After while Kafka is away, and loses nothing that it has accepted', async () => {
    const topics = await createTopics('gone');
    const receiver = await startReceiver(topics);
    await until('Kafka', () => isWriting(receiver));
    const bodies = sampleBodies(RUN);
    const half = Math.floor(bodies.length / 2);
    for (const body of bodies.slice(0, half)) expect((await post(receiver, body)).status).toBe(200);
    await kafka.kill();
    const [next] = bodies.slice(half);
    if (next === undefined) throw new Error('the sample has one body');
    const refused = await post(receiver, next);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const away = await health(receiver);
    expect([away.status, away.text]).toEqual([503, expect.stringContaining('"state":"waiting"')]);
    expect((await fetch(`${receiver.webUrl}/healthz`)).status).toBe(200);
    const metrics = await (await fetch(`${receiver.webUrl}/metrics`)).text();
    expect(metrics).toContain('run_bridge_journal_state{state="waiting"} 1');
    expect(metrics).toMatch(/run_bridge_journal_failures_total [1-9]/);
    await kafka.resume();
    await until('Kafka again', () => isWriting(receiver));
    for (const body of bodies.slice(half)) expect((await post(receiver, body)).status).toBe(200);
    const reader = await startReader(topics);
    const expected = await direct(RUN);
    await until('all records', () => logLines(reader, RUN).length === expected.length);
    expect(sortedLines(reader, RUN)).toEqual(expected);
  });

  it('answers 503 within the time that senders wait when Kafka does not answer', async () => {
    const topics = await createTopics('still');
    const receiver = await startReceiver(topics);
    await until('Kafka', () => isWriting(receiver));
    const [body] = sampleBodies(RUN);
    if (body === undefined) throw new Error('the sample has no body');
    kafka.freeze();
    ended.push(async () => {
      await kafka.kill();
      await kafka.resume();
    });
    const answer = await fetch(`${receiver.otlpUrl}/v1/${body.signal}`, {
      method: 'POST',
      headers: { 'content-type': PROTOBUF },
      body: new Uint8Array(body.body),
      // As long as OpenTelemetry's exporters do.
      signal: AbortSignal.timeout(10_000),
    });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
  });

  it('has what it accepted in Kafka when it is killed', async () => {
    const topics = await createTopics('dead');
    const bodies = sampleBodies(RUN);
    for (const [index, body] of bodies.entries()) {
      if (index % 5 > 0) continue;
      const receiver = await startReceiver(topics);
      for (const one of bodies.slice(index, index + 5)) expect((await post(receiver, one)).status).toBe(200);
      await receiver.stop('SIGKILL');
      expect(body).toBe(bodies[index]);
    }
    const reader = await startReader(topics);
    const expected = await direct(RUN);
    await until('all records', () => logLines(reader, RUN).length === expected.length);
    expect(sortedLines(reader, RUN)).toEqual(expected);
  });

  it('is not ready while its topics have different numbers of partitions, or are missing', async () => {
    const names = ['odd_spans', 'odd_logs'] as const;
    const file = join(folder, 'odd.yaml');
    const keys = [`brokers: ${kafka.broker}`, `traces-topic: ${names[0]}`, `logs-topic: ${names[1]}`];
    writeFileSync(file, ['journal:', '  kafka:', ...keys.map((line) => `    ${line}`), ''].join('\n'));
    const receiver = await start(file, '--role', 'receive');
    await until('the missing topic', async () => /Unknown topic odd_/.test((await health(receiver)).text));
    await kafka.createTopics([names[0]], 2);
    await kafka.createTopics([names[1]], 3);
    const reason = /have 2 and 3 partitions; give both the same number/;
    await until('the difference', async () => reason.test((await health(receiver)).text));
    expect((await health(receiver)).status).toBe(503);
  });
});
