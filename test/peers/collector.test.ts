import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { olderDbtTrace } from '../tool/older-dbt.js';
import { buildPeer, PeerProcess } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { spanEnds } from '../tool/span-ends.js';
import { until } from '../tool/until.js';

const RUN = 'build-mixed';
const PORT = 14_328;
const ended: (() => Promise<void>)[] = [];

beforeAll(() => buildPeer('otelcol'));
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function startBridge(env: Readonly<Record<string, string>> = {}): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ env });
  ended.push(() => bridge.remove());
  return bridge;
}

async function startCollector(config: string, env: Readonly<Record<string, string>>): Promise<void> {
  const collector = await PeerProcess.start('otelcol', `test/peers/conf/${config}`, PORT, {
    OTLP_HTTP_PORT: String(PORT),
    ...env,
  });
  ended.push(() => collector.stop());
}

describe('the OpenTelemetry Collector', () => {
  it('in front of the bridge brings a run as if the engine had sent it', async () => {
    const bridge = await startBridge();
    await startCollector('collector-to-bridge.yaml', { BRIDGE_URL: bridge.otlpUrl });
    await sendSample(`http://127.0.0.1:${PORT}`, RUN);
    const traceId = sampleTraceId(RUN);
    await bridge.finished(traceId);
    const ours = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    expect(spanEnds(ours)).toEqual(spanEnds(sampleRecords(RUN).map(formatRecordLine)));
  });

  it.each([
    ['dbt', { service: 'dbt', scope: 'dbt' }],
    ['dbt-oss', { service: 'dbt-oss', scope: 'dbt-oss' }],
    ['a name that nobody knows', { service: 'melange', scope: 'melange' }],
  ])('in front of the bridge, with names of its own for %s, brings it too', async (_, to) => {
    const bridge = await startBridge();
    await startCollector('collector-renaming.yaml', { BRIDGE_URL: bridge.otlpUrl });
    await sendSample(`http://127.0.0.1:${PORT}`, RUN, to);
    const older = olderDbtTrace();
    await fetch(`http://127.0.0.1:${PORT}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(new JsonCodec().encode(older)),
    });
    const traceId = sampleTraceId(RUN);
    await bridge.finished(traceId);
    const lines = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    expect(spanEnds(lines)).toEqual(spanEnds(sampleRecords(RUN).map(formatRecordLine)));
    expect(lines.length).toBe(sampleRecords(RUN).length);
    const passthrough = join(bridge.dataFolder, 'foreign', '00000001.otlp.jsonl');
    await until('the trace of dbt 1.x', () => existsSync(passthrough));
    expect(bridge.traceIds()).toEqual([traceId]);
    const passed = readFileSync(passthrough, 'utf8');
    expect(passed).toContain('metadata.setup');
    expect(passed).not.toContain('Node evaluated');
  });

  it.each([
    ['of any size', 'collector-to-file.yaml'],
    ['of at most 20 kB', 'collector-small-bodies.yaml'],
  ])('behind the bridge, taking bodies %s, gets every span and every log record', async (_, config) => {
    const out = mkdtempSync(join(tmpdir(), 'run-bridge-collector-'));
    ended.push(async () => rmSync(out, { recursive: true, force: true }));
    await startCollector(config, { OUT: out });
    const bridge = await startBridge({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${PORT}`,
      ...(config === 'collector-to-file.yaml' && { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' }),
    });
    await sendSample(bridge.otlpUrl, RUN);
    const records = sampleRecords(RUN);
    const count = (type: string) => records.filter(({ recordType }) => recordType === type).length;
    const textOf = (file: string) => (existsSync(join(out, file)) ? readFileSync(join(out, file), 'utf8') : '');
    const received = (file: string, key: string) => textOf(file).split(`"${key}":`).length - 1;
    const madeIn = (file: string, key: string) =>
      textOf(file).match(new RegExp(`"${key}":"(exception|test_warned)"`, 'g'))?.length;
    await until('every span', () => received('traces.jsonl', 'startTimeUnixNano') >= count('SpanEnd'));
    // Those that the bridge makes are events of their spans, too.
    const made = Number(madeIn('traces.jsonl', 'name'));
    expect(made).toBeGreaterThan(0);
    await until('every log record', () => received('logs.jsonl', 'eventName') >= count('LogRecord') + made);
    expect(received('traces.jsonl', 'startTimeUnixNano')).toBe(count('SpanEnd'));
    expect(received('logs.jsonl', 'eventName')).toBe(count('LogRecord') + made);
    expect(madeIn('logs.jsonl', 'eventName')).toBe(made);
    for (const file of ['traces.jsonl', 'logs.jsonl']) {
      expect(received(file, 'schemaUrl')).toBe(
        textOf(file).split('https://opentelemetry.io/schemas/1.44.0').length - 1,
      );
      expect(received(file, 'schemaUrl')).toBeGreaterThan(0);
    }
  });

  it.each(['http/protobuf', 'http/json'])('behind the bridge gets metrics of runs, over %s', async (protocol) => {
    const out = mkdtempSync(join(tmpdir(), 'run-bridge-collector-'));
    ended.push(async () => rmSync(out, { recursive: true, force: true }));
    await startCollector('collector-to-file.yaml', { OUT: out });
    const bridge = await startBridge({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${PORT}`,
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: protocol,
      OTEL_METRIC_EXPORT_INTERVAL: '200',
    });
    await sendSample(bridge.otlpUrl, RUN);
    const path = join(out, 'metrics.jsonl');
    // As OTLP's JSON has it; 64-bit numbers are texts there.
    const metrics = await until('the metrics of the run', () => {
      const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
      const [{ scopeMetrics }] = JSON.parse(
        lines.at(-1) ?? '{"resourceMetrics":[{"scopeMetrics":[]}]}',
      ).resourceMetrics;
      const found: Readonly<Record<string, Metric>> = Object.fromEntries(
        scopeMetrics.flatMap((scope: { readonly metrics: readonly Metric[] }) =>
          scope.metrics.map((metric) => [metric.name, metric]),
        ),
      );
      return found['run_bridge.last_run.nodes'] !== undefined && found;
    });
    const duration = metrics['cicd.pipeline.run.duration'];
    expect(duration).toMatchObject({ unit: 's', histogram: { aggregationTemporality: 2 } });
    const [point] = duration?.histogram?.dataPoints ?? [];
    expect(point).toMatchObject({ count: '1', explicitBounds: expect.arrayContaining([14_400]) });
    const attribute = (key: string, text: string) => ({ key, value: { stringValue: text } });
    expect(point?.attributes).toContainEqual(attribute('cicd.pipeline.name', 'adhoc'));
    expect(point?.attributes).toContainEqual(attribute('cicd.pipeline.result', 'failure'));
    const { 'cicd.pipeline.run.errors': errors, 'cicd.pipeline.run.active': active } = metrics;
    expect(errors).toMatchObject({ unit: '{error}', sum: { aggregationTemporality: 2, isMonotonic: true } });
    expect(errors?.sum?.dataPoints).toMatchObject([{ asDouble: 1 }]);
    expect(errors?.sum?.dataPoints[0]?.attributes).toContainEqual(attribute('error.type', '_OTHER'));
    expect(active).toMatchObject({ unit: '{run}', sum: { aggregationTemporality: 2 } });
    expect(active?.sum?.isMonotonic ?? false).toBe(false);
    const failed = metrics['run_bridge.last_run.nodes']?.gauge?.dataPoints.filter(({ attributes }) =>
      attributes.some(({ key, value }) => key === 'run_bridge.node.outcome' && value.stringValue === 'error'),
    );
    expect(failed?.map(({ asDouble }) => asDouble)).toEqual([1]);
  });
});

/** A metric as the Collector writes it. */
interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly gauge?: { readonly dataPoints: readonly (Point & { readonly asDouble: number })[] };
  readonly sum?: {
    readonly isMonotonic?: boolean;
    readonly dataPoints: readonly (Point & { readonly asDouble: number })[];
  };
  readonly histogram?: { readonly dataPoints: readonly (Point & { readonly count: string })[] };
}

interface Point {
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue: string } }[];
}
