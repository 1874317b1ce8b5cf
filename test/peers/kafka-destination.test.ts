import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { buildPeer, PeerProcess } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { TlsFront } from '../tool/tls-front.js';
import { until } from '../tool/until.js';

const RUN = 'build-mixed';
const COLLECTOR_PORT = 14_349;
let kafka: KafkaServer;
let folder: string;
const ended: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  buildPeer('otelcol');
  kafka = await KafkaServer.start();
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-kafka-test-'));
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(async () => {
  await kafka.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** A bridge with a destination `lake` of these topics. @param lines of the destination @param more destinations, in YAML */
async function startBridge(
  test: string,
  lines: readonly string[] = [],
  {
    more = [],
    env = {},
    brokers = kafka.broker,
  }: {
    readonly more?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly brokers?: string;
  } = {},
): Promise<BridgeProcess> {
  const file = join(folder, 'run-bridge.yaml');
  const own = [`brokers: ${brokers}`, `traces-topic: ${test}_spans`, `logs-topic: ${test}_logs`];
  const kafkaLines = [...own, ...lines.filter((line) => line.startsWith(' ')).map((line) => line.trim())];
  const destination = lines.filter((line) => !line.startsWith(' '));
  const yaml = [
    'destinations:',
    ...more.map((line) => `  ${line}`),
    '  lake:',
    ...destination.map((line) => `    ${line}`),
    '    kafka:',
    ...kafkaLines.map((line) => `      ${line}`),
    '',
  ];
  writeFileSync(file, yaml.join('\n'));
  const bridge = await BridgeProcess.start({ args: ['--config', file], env });
  ended.push(() => bridge.remove());
  return bridge;
}

/** A Collector that reads the topics of a test, and takes OTLP. @returns the folder of its files */
async function startCollector(test: string, encoding = 'otlp_proto'): Promise<string> {
  const out = mkdtempSync(join(folder, 'out-'));
  const collector = await PeerProcess.start('otelcol', 'test/peers/conf/kafka-to-file.yaml', COLLECTOR_PORT, {
    OTLP_HTTP_PORT: String(COLLECTOR_PORT),
    KAFKA_BROKER: kafka.broker,
    TOPICS: test,
    ENCODING: encoding,
    OUT: out,
  });
  ended.push(() => collector.stop());
  return out;
}

interface OtlpFile {
  readonly [list: string]: unknown;
}

/** Spans or log records in a file of the Collector, each as text with its resource and scope, in the order of these texts. */
function itemsIn(path: string): readonly string[] {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  // The last line may not be whole yet.
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  const listOf = (value: unknown, ...names: readonly string[]): readonly OtlpFile[] => {
    const found = names.map((name) => (value as OtlpFile)[name]).find(Array.isArray);
    return found ?? [];
  };
  return lines
    .filter((line) => line !== '')
    .flatMap((line) => listOf(JSON.parse(line), 'resourceSpans', 'resourceLogs'))
    .flatMap((group) =>
      listOf(group, 'scopeSpans', 'scopeLogs').flatMap((scope) =>
        listOf(scope, 'spans', 'logRecords').map((item) => JSON.stringify([group.resource, scope.scope, item])),
      ),
    )
    .sort();
}

/** What is in one list alone. */
const differences = (some: readonly string[], others: readonly string[]) => [
  ...some.filter((item) => !others.includes(item)),
  ...others.filter((item) => !some.includes(item)),
];
const RUNS = ['build-clean', 'build-mixed', 'fail-fast', 'parse', 'stale-source', 'test-command'];
const traceIdOf = (item: string) => /"traceId":"([0-9a-f]{32})"/.exec(item)?.[1];
const statusOf = async (bridge: BridgeProcess, name = 'lake') => {
  const text = await (await fetch(`${bridge.webUrl}/readyz?verbose`)).text();
  const { checks } = JSON.parse(text) as { checks: readonly { name: string; details: Record<string, unknown> }[] };
  return checks.find((check) => check.name === `export to ${name}`)?.details ?? {};
};
const isUpToDate = async (bridge: BridgeProcess, name?: string) => {
  const { state, pendingRuns, lagBytes } = await statusOf(bridge, name);
  return state === 'idle' && pendingRuns === 0 && lagBytes === 0;
};

describe('a destination in Kafka', () => {
  it.each([
    ['otlp_proto', 'none'],
    ['otlp_json', 'gzip'],
  ])('has what an OTLP destination gets, keyed by trace id (%s, %s)', async (encoding, compression) => {
    const test = `to_${encoding}`;
    await kafka.createTopics([`${test}_spans`, `${test}_logs`], 3);
    const out = await startCollector(test, encoding);
    const bridge = await startBridge(test, [`compression: ${compression}`, ` encoding: ${encoding}`], {
      more: [`direct: { endpoint: "http://127.0.0.1:${COLLECTOR_PORT}" }`],
    });
    for (const run of RUNS) await sendSample(bridge.otlpUrl, run);
    for (const run of RUNS) await bridge.finished(sampleTraceId(run));
    for (const name of ['lake', 'direct']) await until(`all in ${name}`, () => isUpToDate(bridge, name));
    for (const signal of ['traces', 'logs']) {
      const ours = () => itemsIn(join(out, `kafka-${signal}.jsonl`));
      const direct = () => itemsIn(join(out, `otlp-${signal}.jsonl`));
      const { [signal === 'traces' ? 'sentSpanCount' : 'sentLogCount']: count } = await statusOf(bridge, 'direct');
      await until(`all ${signal}`, () => direct().length === count && ours().length === count);
      expect(differences(ours(), direct())).toEqual([]);
      expect(new Set(ours().map(traceIdOf))).toEqual(new Set(RUNS.map(sampleTraceId)));
    }
    const messages = await kafka.firstMessages(`${test}_spans`, RUNS.length);
    const partitions = new Map(messages.map(({ key, partition }) => [key, partition]));
    expect(RUNS.map(sampleTraceId)).toEqual(expect.arrayContaining([...partitions.keys()]));
    expect(messages.every(({ key, partition }) => partitions.get(key) === partition)).toBe(true);
  });

  it('misses nothing when the broker is killed and comes back, and says meanwhile what is behind', async () => {
    await kafka.createTopics(['back_spans', 'back_logs'], 3);
    const out = await startCollector('back');
    const bridge = await startBridge('back', ['timeout: 2s'], {
      more: [`direct: { endpoint: "http://127.0.0.1:${COLLECTOR_PORT}" }`],
    });
    await sendSample(bridge.otlpUrl, 'parse');
    await until('the first messages', async () => Number((await statusOf(bridge)).sentSpanCount) > 0);
    kafka.freeze();
    for (const run of RUNS) await sendSample(bridge.otlpUrl, run);
    const away = await until('the failure', async () => {
      const status = await statusOf(bridge);
      return status.state === 'waiting' && status;
    });
    expect(away.lastError).toMatch(/timed out/i);
    expect(Number(away.lagBytes)).toBeGreaterThan(0);
    const metrics = await (await fetch(`${bridge.webUrl}/metrics`)).text();
    expect(metrics).toMatch(/run_bridge_destination_lag_bytes{destination="lake"} [1-9]/);
    await kafka.kill();
    await kafka.resume();
    for (const run of RUNS) await bridge.finished(sampleTraceId(run));
    await until('everything', () => isUpToDate(bridge));
    await until('all of the other', () => isUpToDate(bridge, 'direct'));
    for (const signal of ['traces', 'logs']) {
      const ours = () => new Set(itemsIn(join(out, `kafka-${signal}.jsonl`)));
      const expected = () => new Set(itemsIn(join(out, `otlp-${signal}.jsonl`)));
      await until(`all ${signal}`, () => ours().size >= expected().size && expected().size > 0);
      expect(differences([...ours()], [...expected()])).toEqual([]);
    }
  });

  it('is written in smaller messages where the broker takes no larger ones, and names what is larger by itself', async () => {
    await kafka.createTopics(['small_spans', 'small_logs'], 1, { 'max.message.bytes': '1200' });
    const out = await startCollector('small');
    const bridge = await startBridge('small');
    await sendSample(bridge.otlpUrl, RUN);
    await bridge.finished(sampleTraceId(RUN));
    await until('everything', () => isUpToDate(bridge));
    const { sentSpanCount, sentLogCount, refusedCount } = await statusOf(bridge);
    expect(refusedCount).toBeGreaterThan(0);
    expect(bridge.stderr).toMatch(/the span .* of trace [0-9a-f]{32} has \d+ bytes, more than the broker takes/);
    const read = (signal: string) => itemsIn(join(out, `kafka-${signal}.jsonl`)).length;
    await until('all that was taken', () => read('traces') === sentSpanCount && read('logs') === sentLogCount);
  });

  it('has the records themselves where it is said, which another bridge reads', async () => {
    await kafka.createTopics(['records'], 3);
    const file = join(folder, 'records.yaml');
    const lines = 'kafka: { brokers: "BROKER", encoding: jsonl, jsonl-topic: records }'.replace('BROKER', kafka.broker);
    writeFileSync(file, `destinations: { lake: { redaction: off, ${lines} } }\n`);
    const bridge = await BridgeProcess.start({ args: ['--config', file] });
    ended.push(() => bridge.remove());
    writeFileSync(
      file,
      `sources: { kafka: { brokers: "${kafka.broker}", traces-topic: off, logs-topic: off, jsonl-topic: records } }\n`,
    );
    const reader = await BridgeProcess.start({ args: ['--config', file] });
    ended.push(() => reader.remove());
    const logOf = (one: BridgeProcess, run: string) =>
      readFileSync(join(one.runFolder(sampleTraceId(run)), 'telemetry.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .sort();
    for (const run of RUNS) await sendSample(bridge.otlpUrl, run);
    for (const run of RUNS) await reader.finished(sampleTraceId(run));
    for (const run of RUNS) expect(logOf(reader, run)).toEqual(logOf(bridge, run));
    await until('all of it', () => isUpToDate(bridge));
    expect(await statusOf(bridge)).toMatchObject({ sentSpanCount: 0, refusedCount: 0 });
  });

  it('gets the telemetry of other services by trace, too', async () => {
    await kafka.createTopics(['other_spans', 'other_logs'], 3);
    const bridge = await startBridge('other');
    const span = (traceId: string) => ({
      traceId,
      spanId: traceId.slice(16),
      name: 'a',
      startTimeUnixNano: '1',
      endTimeUnixNano: '2',
    });
    const traceIds = ['1', '2', '3'].map((digit) => digit.repeat(32));
    const body = { resourceSpans: [{ scopeSpans: [{ spans: [...traceIds, ...traceIds].map(span) }] }] };
    const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
    const messages = await kafka.firstMessages('other_spans', 3);
    expect(messages.map(({ key }) => key).sort()).toEqual(traceIds);
  });

  it('is reached over TLS by who says who he is, and can be tested from the settings page', async () => {
    const test = 'secure_to';
    await kafka.createTopics([`${test}_spans`, `${test}_logs`]);
    const sasl = [
      ' sasl-mechanism: SCRAM-SHA-512',
      ` sasl-username: ${KafkaServer.user}`,
      ` sasl-password: \${env:KAFKA_PASSWORD}`,
      ` tls-ca-file: ${TlsFront.certificate}`,
    ];
    const tested = async (password: string) => {
      const env = { KAFKA_PASSWORD: password };
      const bridge = await startBridge(test, sasl, { brokers: kafka.secureBroker, env });
      await until('the thread', async () => (await statusOf(bridge)).state === 'idle');
      const page = await fetch(`${bridge.webUrl}/settings/test`, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          origin: bridge.webUrl,
          cookie: `run_bridge_token=${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}`,
        },
        body: 'destination=lake',
      });
      const text = await page.text();
      await bridge.stop();
      expect(text).not.toContain(password);
      return text.replace(/<[^>]*>/g, ' ');
    };
    expect(await tested(KafkaServer.password)).toMatch(/span: taken after .*log record: taken after /is);
    expect(await tested('another-secret')).toMatch(/authentication failed/i);
  });

  it('is refused at the start where the bridge reads its topics itself', async () => {
    const file = join(folder, 'loop.yaml');
    const { broker } = kafka;
    writeFileSync(
      file,
      `sources: { kafka: { brokers: "${broker.replace('127.0.0.1', 'localhost')}" } }\ndestinations: { lake: { kafka: { brokers: "${broker}" } } }\n`,
    );
    const message = /destination lake writes otlp_spans and otlp_logs, which "sources: kafka:" reads/;
    await expect(BridgeProcess.start({ args: ['--config', file] })).rejects.toThrow(message);
  });
});
