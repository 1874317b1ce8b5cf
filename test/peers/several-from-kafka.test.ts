import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { freePorts } from '../crash/free-ports.js';
import { sampleBodies, sampleTraceId } from '../fake/sample-run.js';
import { BridgeCluster } from '../tool/bridge-cluster.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { buildPeer, PeerProcess } from '../tool/peer-process.js';
import type { Renaming } from '../tool/renamed.js';
import { sendSample } from '../tool/send-sample.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';

const statusSchema = z.object({ data: z.object({ id: z.number(), finished_at: z.string().nullable() }) });
const TOPICS = ['otlp_spans', 'otlp_logs'];
const JOURNAL = 'reader="journal"';
const EXPIRED_COUNT = 30;
let cluster: BridgeCluster;
const ended: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  buildPeer('otelcol');
  cluster = await BridgeCluster.start(['all', 'all'], []);
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(() => cluster.remove());

const ask = (path: string) =>
  fetch(`${cluster.bridge(0).webUrl}/api/run-bridge/v1/runs/${path}`, {
    headers: { Authorization: `Token ${cluster.token}` },
  });

/** The record log of a run that is over, as any of the processes answers it, in an order of its own; no lines before. */
async function storedLines(traceId: string): Promise<readonly string[]> {
  const answer = await ask(traceId);
  if (answer.status !== 200 || statusSchema.parse(await answer.json()).data.finished_at === null) return [];
  const events = await (await ask(`${traceId}/events`)).text();
  return events
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {"record_type"') ? [line.slice('data: '.length)] : []))
    .sort();
}

/** Messages that the topics had so far. */
const messageCount = () => cluster.kafka.lag('nobody', TOPICS);

async function expectAll(run: string, wanted: readonly string[] = []): Promise<void> {
  const traceId = sampleTraceId(run);
  await until(`all of ${run}`, async () => (await storedLines(traceId)).length >= wanted.length);
  expect(await storedLines(traceId)).toEqual(wanted);
}

/** A metric's samples, over all processes. @param label which they have to have, such as `reader="journal"` */
async function countOf(name: string, label = ''): Promise<number> {
  let count = 0;
  for (const { webUrl } of cluster.bridges) {
    const answer = await fetch(`${webUrl}/metrics`, { headers: { Authorization: `Token ${cluster.token}` } });
    const samples = (await answer.text()).matchAll(new RegExp(`^${name}(?:{(.*)})? (\\d+)$`, 'gm'));
    for (const [, labels = '', value] of samples) if (labels.includes(label)) count += Number(value);
  }
  return count;
}

/** Of runs that one of the processes builds. */
const heldCount = () => countOf('run_bridge_builder_open_traces');
const everythingIsCommitted = async () => (await cluster.kafka.lag('run-bridge', TOPICS)) === 0;

/** What a bridge that is alone has of runs that the engine sends to it. */
async function direct(runs: readonly string[], to?: Renaming): Promise<ReadonlyMap<string, readonly string[]>> {
  const bridge = await BridgeProcess.start();
  ended.push(() => bridge.remove());
  for (const run of runs) await sendSample(bridge.otlpUrl, run, to);
  const lines = new Map<string, readonly string[]>();
  for (const run of runs) {
    await bridge.finished(sampleTraceId(run));
    const path = join(bridge.runFolder(sampleTraceId(run)), 'telemetry.jsonl');
    lines.set(run, readFileSync(path, 'utf8').trimEnd().split('\n').sort());
  }
  return lines;
}

describe('several processes whose topics a Collector writes to', () => {
  it.each([
    ['keyed by trace', 'true', 'murmur2', ['build-mixed', 'fail-fast']],
    ["keyed by trace, with the Collector's own hash", 'true', 'sarama_compat', ['parse']],
    ['keyed by nothing', 'false', 'murmur2', ['build-clean', 'stale-source', 'test-command']],
  ])('have of each run what a bridge has that the engine sends to itself (%s)', async (how, byTrace, hasher, runs) => {
    const [port = 0] = await freePorts(1, 24_500);
    const collector = await PeerProcess.start('otelcol', 'test/peers/conf/collector-to-kafka.yaml', port, {
      OTLP_HTTP_PORT: String(port),
      KAFKA_BROKER: cluster.kafka.broker,
      TOPICS: 'otlp',
      COMPRESSION: 'none',
      BY_TRACE: byTrace,
      HASHER: hasher,
    });
    ended.push(() => collector.stop());
    const expected = await direct(runs);
    const before = await messageCount();
    for (const run of runs) await sendSample(`http://127.0.0.1:${port}`, run);
    for (const run of runs) await expectAll(run, expected.get(run));
    // What was keyed otherwise was keyed anew.
    const sentCount = runs.flatMap(sampleBodies).length;
    const keyedAnewCount = (await messageCount()) - before - sentCount;
    if (how === 'keyed by trace') expect(keyedAnewCount).toBe(0);
    if (how === 'keyed by nothing') expect(keyedAnewCount).toBeGreaterThan(0);
  });

  it('have a run under new names, through receivers and builders', async () => {
    const [run, to] = ['interrupted', { service: 'analytics', scope: 'dbt-oss', keeps: [] }] as const;
    const expected = await direct([run], to);
    await sendSample(cluster.bridge(0).otlpUrl, run, to);
    await expectAll(run, expected.get(run));
  });
});

describe('topics of several processes', () => {
  it('may hold what is no telemetry, which is kept by name and passed over', async () => {
    const key = 'ab'.repeat(16);
    const garbage = Buffer.from('no protobuf');
    const asRecords = { 'run-bridge-records': '1' };
    const odd = [
      { value: garbage },
      { key, value: Buffer.alloc(0) },
      { key, value: null },
      { key, value: garbage, headers: asRecords },
      { value: garbage, headers: asRecords },
      { key: 'no trace id', value: garbage, headers: asRecords },
    ];
    for (const topic of TOPICS) await cluster.kafka.send(topic, odd);
    const expected = await direct(['joined', 'overlapping']);
    for (const { signal, body } of sampleBodies('joined')) {
      const topic = signal === 'traces' ? 'otlp_spans' : 'otlp_logs';
      await cluster.kafka.send(topic, [{ key, value: body }]);
    }
    await sendSample(cluster.bridge(1).otlpUrl, 'overlapping');
    for (const [run, lines] of expected) await expectAll(run, lines);
    await until('every commit', everythingIsCommitted);
    const rejects = cluster.bridges.flatMap(({ dataFolder }) => {
      const path = join(dataFolder, 'rejects.jsonl');
      return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
    });
    expect(rejects.length).toBe(TOPICS.length * odd.length);
    expect(rejects.join('\n')).not.toContain('failed on this request');
    expect(await countOf('run_bridge_kafka_rejected_messages_total', JOURNAL)).toBe(rejects.length);
  });

  it('may get more partitions while runs come in, which then move to other processes', async () => {
    const runs = Array.from({ length: 12 }, () => new SentRun());
    const { otlpUrl } = cluster.bridge(0);
    const send = async (signal: string) => {
      for (const run of runs) {
        for (const body of run.bodies.filter((one) => one.signal === signal)) {
          await until('an answer with 200', async () => (await run.sendOne(otlpUrl, body)).status === 200);
        }
      }
    };
    // They are open until their spans come.
    await send('logs');
    await cluster.kafka.addPartitions(TOPICS, 10);
    await until('each partition', async () => (await cluster.partitionCounts()).join() === '8,8');
    await until('each run', async () => (await heldCount()) === runs.length);
    await send('traces');
    for (const run of runs) {
      await until('the end of a run', async () => (await storedLines(run.traceId)).length > 0);
      const lines = (await storedLines(run.traceId)).join('\n');
      expect(run.compareLines(lines)).toEqual({ missingCount: 0, addedCount: 0 });
    }
    await until('every commit', everythingIsCommitted);
    await until('that no process has any of them', async () => (await heldCount()) === 0);
  });

  it('may lose what nobody has read in time: the rest is read, and it is said', async () => {
    for (const bridge of cluster.bridges) await bridge.stop();
    for (const topic of TOPICS) {
      await cluster.kafka.send(
        topic,
        Array.from({ length: EXPIRED_COUNT }, (_, index) => ({ key: `${index}`, value: Buffer.from('x') })),
      );
    }
    await cluster.kafka.expire(TOPICS);
    for (const index of cluster.bridges.keys()) await cluster.restart(index);
    const brand = { service: 'dbt', scope: 'dbt', keeps: ['service.version'] };
    const expected = await direct(['build-mixed-fusion'], brand);
    for (const run of expected.keys()) await sendSample(cluster.bridge(0).otlpUrl, run, brand);
    for (const [run, lines] of expected) await expectAll(run, lines);
    const said = cluster.bridges.map(({ stderr }) => stderr).join('');
    expect(said).toContain('the topic no longer has what was to be read next');
    expect(await countOf('run_bridge_kafka_expired_messages_total', JOURNAL)).toBe(TOPICS.length * EXPIRED_COUNT);
  });
});
