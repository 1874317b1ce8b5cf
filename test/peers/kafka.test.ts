import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import { SMALL_SAMPLES, sampleBodies, sampleLines, sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { HEARTBEAT } from '../tool/kafka-front.js';
import { KafkaServer } from '../tool/kafka-server.js';
import { buildPeer, PeerProcess } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { spanEnds } from '../tool/span-ends.js';
import { TlsFront } from '../tool/tls-front.js';
import { until } from '../tool/until.js';

const RUN = 'build-mixed';
const JSON_CODEC = new JsonCodec();
const PROTOBUF_CODEC = new ProtobufCodec();
const READING = /"state":"reading","problem":null/;
const TRACE = sampleTraceId(RUN);
const COLLECTOR_PORT = 14_348;
/** The client tries three times more. */
const HEARTBEAT_ATTEMPTS = 4;
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

/** A bridge that reads topics. @param kafkaLines of its file, below `sources: kafka:` */
async function startBridge(
  kafkaLines: readonly string[],
  {
    dataFolder,
    args = [],
    env = {},
  }: {
    readonly dataFolder?: string;
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<BridgeProcess> {
  const file = join(folder, 'run-bridge.yaml');
  const hasBrokers = kafkaLines.some((line) => line.startsWith('brokers:'));
  const lines = hasBrokers ? kafkaLines : [`brokers: ${kafka.broker}`, ...kafkaLines];
  writeFileSync(file, ['sources:', '  kafka:', ...lines.map((line) => `    ${line}`), ''].join('\n'));
  const bridge = await BridgeProcess.start({
    args: ['--config', file, ...args],
    env,
    ...(dataFolder && { dataFolder }),
  });
  ended.push(async () => {
    await bridge.stop('SIGKILL');
    if (dataFolder === undefined) await bridge.remove();
  });
  return bridge;
}

/** A folder for bridges that follow each other. */
function dataFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'run-bridge-data-'));
  ended.push(async () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Topics and a group that no other test has. */
async function topics(
  test: string,
  partitions = 1,
): Promise<{ traces: string; logs: string; jsonl: string; lines: readonly string[] }> {
  const names = { traces: `${test}_spans`, logs: `${test}_logs`, jsonl: `${test}_jsonl` };
  await kafka.createTopics(Object.values(names), partitions);
  const lines = [
    `group-id: ${test}`,
    `traces-topic: ${names.traces}`,
    `logs-topic: ${names.logs}`,
    `jsonl-topic: ${names.jsonl}`,
  ];
  return { ...names, lines };
}

/** Sends a sample's bodies as they are, to the topics of their signals. */
async function sendBodies(
  run: string,
  { traces, logs }: { readonly traces: string; readonly logs: string },
): Promise<void> {
  for (const { signal, body } of sampleBodies(run)) {
    await kafka.send(signal === 'traces' ? traces : logs, [{ key: sampleTraceId(run), value: body }]);
  }
}

const logLines = (bridge: BridgeProcess, traceId: string): readonly string[] => {
  const path = join(bridge.runFolder(traceId), 'telemetry.jsonl');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
};
const sorted = (lines: readonly string[]) => [...lines].sort();
const metrics = async (bridge: BridgeProcess) => (await fetch(`${bridge.webUrl}/metrics`)).text();
const health = async (bridge: BridgeProcess) => (await fetch(`${bridge.webUrl}/readyz?verbose`)).text();

/** What a bridge has of the run when the engine sends it itself. */
async function direct(run: string): Promise<readonly string[]> {
  const bridge = await BridgeProcess.start();
  ended.push(() => bridge.remove());
  await sendSample(bridge.otlpUrl, run);
  await bridge.finished(sampleTraceId(run));
  return logLines(bridge, sampleTraceId(run));
}

describe('topics of Kafka', () => {
  // The first in topics and a group that nobody has to name.
  it.each([
    ['otlp', 'none'],
    ['gzip', 'gzip'],
    ['snappy', 'snappy'],
    ['lz4', 'lz4'],
    ['zstd', 'zstd'],
  ])(
    "that the Collector's exporter writes give the same record log as the engine itself (%s, %s)",
    async (test, packed) => {
      const { lines } = await topics(test, 3);
      const bridge = await startBridge(test === 'otlp' ? [] : lines);
      const collector = await PeerProcess.start('otelcol', 'test/peers/conf/collector-to-kafka.yaml', COLLECTOR_PORT, {
        OTLP_HTTP_PORT: String(COLLECTOR_PORT),
        KAFKA_BROKER: kafka.broker,
        TOPICS: test,
        COMPRESSION: packed,
      });
      ended.push(() => collector.stop());
      await sendSample(`http://127.0.0.1:${COLLECTOR_PORT}`, RUN);
      await bridge.finished(TRACE);
      const ours = logLines(bridge, TRACE);
      expect(spanEnds(ours)).toEqual(spanEnds(sampleRecords(RUN).map(formatRecordLine)));
      expect(sorted(ours)).toEqual(sorted(await direct(RUN)));
    },
  );

  it('hold requests in protobuf, which give byte for byte what they give over HTTP', async () => {
    const { lines, ...names } = await topics('proto');
    await sendBodies(RUN, names);
    const bridge = await startBridge(lines);
    await bridge.finished(TRACE);
    expect(sorted(logLines(bridge, TRACE))).toEqual(sorted(await direct(RUN)));
  });

  it('hold lines of JSONL, and what is no telemetry among them is kept by name and holds nothing back', async () => {
    const { lines, ...names } = await topics('bad');
    await kafka.send(names.traces, [{ value: Buffer.from('no protobuf') }, { value: Buffer.alloc(0) }]);
    await kafka.send(names.jsonl, [{ value: Buffer.from(`{"record_type":\n${sampleLines(RUN)[0]}\n`) }]);
    await kafka.send(names.jsonl, [{ value: Buffer.from(sampleLines(RUN).slice(1).join('\n')) }]);
    const bridge = await startBridge(lines);
    await bridge.finished(TRACE);
    expect(spanEnds(logLines(bridge, TRACE))).toEqual(spanEnds(sampleLines(RUN)));
    const rejects = await until('the rejects', () => {
      const path = join(bridge.dataFolder, 'rejects.jsonl');
      const rows = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
      return rows.length === 3 && rows.map((row): unknown => JSON.parse(row));
    });
    expect(rejects).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          file: `kafka:${names.traces}`,
          place: 'partition 0, offset 0',
          text: Buffer.from('no protobuf').toString('base64'),
        }),
        expect.objectContaining({
          file: `kafka:${names.traces}`,
          place: 'partition 0, offset 1',
          reason: 'The message is empty.',
        }),
        expect.objectContaining({
          file: `kafka:${names.jsonl}`,
          place: 'partition 0, offset 0, line 1',
          text: '{"record_type":',
        }),
      ]),
    );
    await until('the commit', async () => (await kafka.committed('bad', names.traces)) === 2);
    await until('the other commit', async () => (await kafka.committed('bad', names.jsonl)) === 2);
  });

  it('lose nothing and bring nothing twice when the bridge is killed between acceptance and commit', async () => {
    const { lines, ...names } = await topics('killed');
    // One answer of the broker holds all of them, so that the bridge has them when the broker stands still.
    const messages = SMALL_SAMPLES.flatMap((run) => sampleLines(run)).slice(0, 1_500);
    expect(messages.join('').length).toBeLessThan(4 * 2 ** 20);
    const data = dataFolder();
    await kafka.send(
      names.jsonl,
      messages.map((line) => ({ value: Buffer.from(line) })),
    );
    const first = await startBridge(lines, { dataFolder: data });
    await until('the first records', () => first.traceIds().length > 0);
    kafka.freeze();
    const accepted = () => first.traceIds().reduce((sum, traceId) => sum + logLines(first, traceId).length, 0);
    let before = 0;
    let stillCount = 0;
    await until('a commit that is not answered', () => {
      stillCount = before === accepted() ? stillCount + 1 : 0;
      before = accepted();
      return stillCount === 40 && before > 0;
    });
    await first.stop('SIGKILL');
    // What the broker had not read of its connections is gone.
    await kafka.kill();
    await kafka.resume();
    expect(before).toBeLessThan(messages.length);
    // Not less, where the broker took the last commit and stood still before it answered.
    expect(await kafka.committed('killed', names.jsonl)).toBeLessThanOrEqual(before);

    const second = await startBridge(lines, { dataFolder: data });
    await until('every commit', async () => (await kafka.committed('killed', names.jsonl)) === messages.length);
    const traceIds = new Set(messages.map((line) => (JSON.parse(line) as { trace_id: string }).trace_id));
    const all = [...traceIds].flatMap((traceId) => logLines(second, traceId));
    const canonical = (text: readonly string[]) => sorted(text.map((line) => JSON.stringify(JSON.parse(line))));
    expect(canonical(all)).toEqual(canonical(messages));
  });

  it('hold requests in JSON, too', async () => {
    const { lines, ...names } = await topics('json');
    for (const { signal, body } of sampleBodies(RUN)) {
      const value = JSON_CODEC.encode(PROTOBUF_CODEC.decode(signal, body));
      await kafka.send(names[signal], [{ key: TRACE, value }]);
    }
    const bridge = await startBridge([...lines, 'encoding: otlp_json']);
    await bridge.finished(TRACE);
    expect(sorted(logLines(bridge, TRACE))).toEqual(sorted(await direct(RUN)));
  });

  it('are read from their ends where the file says so, and from there on, even if nothing had come before a restart', async () => {
    const { lines, ...names } = await topics('latest', 2);
    const latest = [...lines, 'initial-offset: latest'];
    await sendBodies('parse', names);
    const data = dataFolder();
    const first = await startBridge(latest, { dataFolder: data });
    await until('the first commit', async () => (await kafka.committed('latest', names.jsonl)) === 0);
    await first.stop();
    await sendBodies(RUN, names);
    const second = await startBridge(latest, { dataFolder: data });
    await second.finished(TRACE);
    expect(spanEnds(logLines(second, TRACE))).toEqual(spanEnds(sampleLines(RUN)));
    expect(second.traceIds()).toEqual([TRACE]);
  });

  it.each(['earliest', 'latest'])('may come to be later, and are read from their beginnings (%s)', async (offset) => {
    const names = { traces: `later_${offset}_spans`, logs: `later_${offset}_logs` };
    const bridge = await startBridge([
      `group-id: later_${offset}`,
      `initial-offset: ${offset}`,
      `traces-topic: ${names.traces}`,
      `logs-topic: ${names.logs}`,
    ]);
    const missing = `the broker has no topic ${names.traces} and no ${names.logs}`;
    await until('the problem', async () => (await health(bridge)).includes(missing));
    await kafka.createTopics([names.traces]);
    await until('one topic', async () => READING.test(await health(bridge)));
    expect(await health(bridge)).toContain(`"missingTopics":"${names.logs}"`);
    await until(
      'its beginning',
      async () => offset === 'earliest' || (await kafka.committed(`later_${offset}`, names.traces)) === 0,
    );
    await kafka.createTopics([names.logs]);
    await sendBodies(RUN, names);
    const count = (await direct(RUN)).length;
    await until('the whole run', () => logLines(bridge, TRACE).length === count);
    expect(await health(bridge)).toContain('"missingTopics":""');
  });

  it('are read in partitions, too, that are added while they are read', async () => {
    const { lines, ...names } = await topics('more');
    const bridge = await startBridge(lines);
    await until('the group', async () => READING.test(await health(bridge)));
    await kafka.addPartitions([names.traces, names.logs], 7);
    // By their keys some of them come to partitions that were not there before.
    const runs = [RUN, 'build-clean', 'fail-fast', 'parse', 'stale-source'];
    for (const run of runs) await sendBodies(run, names);
    for (const run of runs) await bridge.finished(sampleTraceId(run), 60_000);
    const count = (await direct(RUN)).length;
    await until('the whole run', () => logLines(bridge, TRACE).length === count);
  });

  it('are read on after the broker was gone, and health and metrics say so meanwhile', async () => {
    const { lines, ...names } = await topics('away');
    const bridge = await startBridge(lines);
    await until('the group', async () => READING.test(await health(bridge)));
    await kafka.kill();
    await until('the failure', async () => /"state":"waiting","problem":"[^"]/.test(await health(bridge)));
    const away = await metrics(bridge);
    expect(away).toContain('run_bridge_kafka_state{reader="source",state="waiting"} 1');
    expect(away).toMatch(/run_bridge_kafka_failures_total\{reader="source"\} [1-9]/);
    await kafka.resume();
    await sendBodies(RUN, names);
    await bridge.finished(TRACE, 60_000);
    expect(await health(bridge)).toMatch(READING);
  });

  it('are read by a member of the group again when its heartbeats do not get through for a while', async () => {
    const { lines, ...names } = await topics('heartbeats');
    const front = await kafka.openFront();
    ended.push(() => front.close());
    const bridge = await startBridge([`brokers: ${kafka.frontBroker}`, ...lines]);
    await until('the group', async () => READING.test(await health(bridge)));
    front.broken = HEARTBEAT;
    await until('a heartbeat that is given up', () => front.brokenCount >= HEARTBEAT_ATTEMPTS);
    // A session is ten seconds: the broker counts it out.
    await until('a group without members', async () => (await kafka.memberCount('heartbeats')) === 0);
    front.broken = undefined;
    await sendBodies(RUN, names);
    await bridge.finished(TRACE, 60_000);
    const count = sampleBodies(RUN).filter(({ signal }) => signal === 'traces').length;
    await until('the commit', async () => (await kafka.committed('heartbeats', names.traces)) === count);
    expect(await kafka.memberCount('heartbeats')).toBe(1);
  });

  it('are not read on while there is no room, and nothing of them is passed over', async () => {
    const { lines, ...names } = await topics('full');
    await sendBodies(RUN, names);
    const data = dataFolder();
    // Nothing is taken while the data folder may hold no more than a byte.
    const full = await startBridge(lines, { dataFolder: data, args: ['--max-disk', '1'] });
    await until('a refusal', async () => {
      return /run_bridge_receiver_refused_requests_total{reason="shortage"} [1-9]/.test(await metrics(full));
    });
    expect(await health(full)).toMatch(READING);
    const count = sampleBodies(RUN).filter(({ signal }) => signal === 'traces').length;
    expect(await metrics(full)).toContain(
      `run_bridge_kafka_lag_messages{reader="source",topic="${names.traces}"} ${count}`,
    );
    expect(await full.stop()).toBe(0);
    expect(await kafka.committed('full', names.traces)).toBe(0);
    const bridge = await startBridge(lines, { dataFolder: data });
    await bridge.finished(TRACE);
    expect(spanEnds(logLines(bridge, TRACE))).toEqual(spanEnds(sampleLines(RUN)));
    expect(existsSync(join(data, 'rejects.jsonl'))).toBe(false);
    const none = `run_bridge_kafka_lag_messages{reader="source",topic="${names.traces}"} 0`;
    await until('the last commit', async () => (await metrics(bridge)).includes(none));
  });

  it('give all of a run to one of several bridges, and what one leaves to another', async () => {
    const { lines, ...names } = await topics('shared', 4);
    const bridges = [await startBridge(lines), await startBridge(lines)] as const;
    await until('both members', async () =>
      (await Promise.all(bridges.map(health))).every((text) => READING.test(text)),
    );
    const runs = ['build-clean', 'build-mixed', 'fail-fast', 'parse', 'stale-source', 'test-command'];
    for (const run of runs) await sendBodies(run, names);
    const endsOf = (bridge: BridgeProcess, run: string) => spanEnds(logLines(bridge, sampleTraceId(run)));
    const ownersOf = (run: string) => bridges.filter((bridge) => bridge.traceIds().includes(sampleTraceId(run)));
    for (const run of runs) {
      const count = spanEnds(sampleLines(run)).length;
      await until(`all of ${run}`, () => bridges.some((bridge) => endsOf(bridge, run).length === count));
    }
    expect(runs.map((run) => ownersOf(run).length)).toEqual(runs.map(() => 1));
    expect(new Set(runs.flatMap(ownersOf)).size).toBe(2);

    const [leaving, staying] = bridges;
    expect(await leaving.stop()).toBe(0);
    await sendBodies('joined', names);
    for (const run of runs.filter((one) => ownersOf(one).includes(leaving))) await sendBodies(run, names);
    for (const run of [...runs, 'joined']) await staying.finished(sampleTraceId(run));
  });

  it('are read over TLS by who says who he is: by password, by SCRAM, and by a token', async () => {
    const tokens = createServer((request, response) => {
      const isKnown =
        request.headers.authorization === `Basic ${Buffer.from('bridge:client-secret').toString('base64')}`;
      const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const nowSeconds = Math.floor(Date.now() / 1_000);
      const claims = { sub: 'bridge', iat: nowSeconds, exp: nowSeconds + 3_600 };
      response.statusCode = isKnown ? 200 : 401;
      response.end(
        JSON.stringify({ access_token: `${encoded({ alg: 'none' })}.${encoded(claims)}.`, expires_in: 3_600 }),
      );
    });
    await new Promise<void>((resolve) => tokens.listen(0, '127.0.0.1', resolve));
    ended.push(async () => tokens.close());
    const { port } = tokens.address() as AddressInfo;
    const password = [`sasl-username: ${KafkaServer.user}`, `sasl-password: \${env:KAFKA_PASSWORD}`];
    const token = [
      `sasl-token-url: http://127.0.0.1:${port}/token`,
      'sasl-client-id: bridge',
      `sasl-client-secret: \${env:KAFKA_PASSWORD}`,
    ];
    const secure = [`brokers: ${kafka.secureBroker}`, `tls-ca-file: ${TlsFront.certificate}`];
    const ways = [
      { mechanism: 'PLAIN', more: password, secret: KafkaServer.password },
      { mechanism: 'SCRAM-SHA-256', more: password, secret: KafkaServer.password },
      { mechanism: 'SCRAM-SHA-512', more: password, secret: KafkaServer.password },
      { mechanism: 'OAUTHBEARER', more: token, secret: 'client-secret' },
    ];
    const { lines, ...names } = await topics('secure');
    await sendBodies('parse', names);
    for (const { mechanism, more, secret } of ways) {
      const own = lines.map((line) => line.replace('group-id: secure', `group-id: ${mechanism}`));
      const settings = [...secure, ...own, `sasl-mechanism: ${mechanism}`, ...more];
      const bridge = await startBridge(settings, { env: { KAFKA_PASSWORD: secret } });
      await bridge.finished(sampleTraceId('parse'));
      await bridge.stop();
    }
    const settings = [...secure, ...lines, 'sasl-mechanism: PLAIN', ...password];
    const refused = await startBridge(settings, { env: { KAFKA_PASSWORD: 'another-secret' } });
    await until('the refusal', async () => /"problem":"[^"]*[Aa]uthentication failed/.test(await health(refused)));
    expect(refused.stderr).not.toContain('another-secret');
  });

  it('are read by who has a certificate, where the broker asks for one', async () => {
    const { lines, ...names } = await topics('mutual');
    await sendBodies('parse', names);
    const trusting = [`brokers: ${kafka.mutualBroker}`, `tls-ca-file: ${TlsFront.certificate}`, ...lines];
    const stranger = await startBridge(trusting);
    await until('the refusal', async () => /"state":"waiting","problem":"[^"]/.test(await health(stranger)));
    expect(stranger.traceIds()).toEqual([]);
    await stranger.stop();
    const key = TlsFront.certificate.replace(/crt$/, 'key');
    const known = await startBridge([...trusting, `tls-cert-file: ${TlsFront.certificate}`, `tls-key-file: ${key}`]);
    await known.finished(sampleTraceId('parse'));
  });
});
