import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseRecordLine } from '../../src/record/record-line.js';
import type { SpanEnd } from '../../src/record/telemetry-record.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine } from '../tool/engine.js';
import { buildPeer, PeerProcess } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const OTLP_PORT = 14_318;
const QUERY = 'http://127.0.0.1:16686';

interface JaegerSpan {
  readonly spanID: string;
  readonly operationName: string;
  readonly references: readonly { readonly refType: string; readonly spanID: string }[];
  readonly tags: readonly { readonly key: string; readonly value: unknown }[];
  readonly logs: readonly { readonly fields: readonly { readonly key: string; readonly value: unknown }[] }[];
}

/** The spans that Jaeger's query API has of a trace. */
async function spansInJaeger(traceId: string): Promise<readonly JaegerSpan[]> {
  const response = await fetch(`${QUERY}/api/traces/${traceId}`);
  if (!response.ok) return [];
  const { data } = (await response.json()) as { data: readonly { spans: readonly JaegerSpan[] }[] };
  return data.flatMap(({ spans }) => spans);
}

const tag = (span: JaegerSpan, key: string) => span.tags.find((found) => found.key === key)?.value;

describe('a run of the real engine, seen in Jaeger', () => {
  let jaeger: PeerProcess;
  let bridge: BridgeProcess;
  let engine: Engine;
  let ended: readonly SpanEnd[];
  let spans: readonly JaegerSpan[];

  beforeAll(async () => {
    buildPeer('jaeger');
    engine = Engine.up('core');
    jaeger = await PeerProcess.start('jaeger', 'test/tool/peers/conf/jaeger.yaml', OTLP_PORT, {
      OTLP_HTTP_PORT: String(OTLP_PORT),
      OTLP_GRPC_PORT: '14317',
    });
    bridge = await BridgeProcess.start({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${OTLP_PORT}` } });
    await engine.run(['build', '--exclude', 'tag:slow', '--export-to-otlp', '--otel-file-name', 'otel.jsonl'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: bridge.otlpUrl,
    });
    ended = engine
      .jsonlLines()
      .map(parseRecordLine)
      .filter((record): record is SpanEnd => record.recordType === 'SpanEnd');
    const traceId = ended[0]?.traceId ?? '';
    spans = await until('every span in Jaeger', async () => {
      const found = await spansInJaeger(traceId);
      return found.length >= ended.length && found;
    });
  });

  afterAll(async () => {
    await bridge?.remove();
    await jaeger?.stop();
    engine?.remove();
  });

  it('has every span once, with its parent', () => {
    const tree = (list: readonly (readonly [string, string | null])[]) => list.map(String).sort();
    const parentOf = ({ references }: JaegerSpan) => references.find(({ refType }) => refType === 'CHILD_OF')?.spanID;
    expect(tree(spans.map((span) => [span.spanID, parentOf(span) ?? null]))).toEqual(
      tree(ended.map(({ spanId, parentSpanId }) => [spanId, parentSpanId])),
    );
  });

  it('flags failed nodes, failed tests and the invocation as errors, and nothing that went well', () => {
    const failed = spans.filter((span) => tag(span, 'error') === true && tag(span, 'last_phase') !== undefined);
    const uniqueIds = failed.map((span) => String(tag(span, 'unique_id'))).sort();
    expect(uniqueIds.map((id) => id.split('.').slice(0, 3).join('.'))).toEqual([
      'model.shop.broken',
      'test.shop.status_strict',
      'unit_test.shop.ut_target',
    ]);
    const invocation = spans.find(({ operationName }) => operationName === 'dbt invocation (build)');
    expect(invocation && tag(invocation, 'error')).toBe(true);
  });

  it('has the error of the broken model as an exception event', () => {
    const broken = spans.find(
      (span) => tag(span, 'unique_id') === 'model.shop.broken' && tag(span, 'last_phase') !== undefined,
    );
    const fields = broken?.logs.flatMap((log) => log.fields) ?? [];
    const message = fields.find(({ key }) => key === 'exception.message')?.value;
    expect(String(message)).toContain('nonexistent_column');
  });

  it('links its nodes to those that they are made of, once its manifest is there and it is sent again', async () => {
    const traceId = ended[0]?.traceId ?? '';
    const headers = { authorization: `Token ${readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim()}` };
    const api = `${bridge.webUrl}/api/run-bridge/v1/runs`;
    const runId = await until('the end of the run', async () => {
      const { data } = JSON.parse(await (await fetch(`${api}/${traceId}`, { headers })).text());
      return data?.is_complete === true && Number(data.id);
    });
    const body = readFileSync(join(engine.project, 'target', 'manifest.json'));
    const stored = await fetch(`${api}/${runId}/artifacts/manifest.json?step=1`, { method: 'PUT', headers, body });
    expect(stored.status).toBe(201);
    expect((await fetch(`${api}/${runId}/export`, { method: 'POST', headers })).status).toBe(200);
    const processed = (all: readonly JaegerSpan[], uniqueId: string) =>
      all.filter((span) => tag(span, 'unique_id') === uniqueId && tag(span, 'last_phase') !== undefined);
    const linked = await until('links in Jaeger', async () => {
      const all = await spansInJaeger(traceId);
      const found = processed(all, 'model.shop.revenue').find(({ references }) =>
        references.some(({ refType }) => refType === 'FOLLOWS_FROM'),
      );
      return found !== undefined && { all, found };
    });
    const upstream = ['model.shop.stg_customers', 'model.shop.eph_paid'];
    const ids = upstream.map((id) => processed(linked.all, id)[0]?.spanID);
    const references = linked.found.references.filter(({ refType }) => refType === 'FOLLOWS_FROM');
    expect(references.map(({ spanID }) => spanID).sort()).toEqual(ids.sort());
  });

  it("has the same from OpenTelemetry's own exporter", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-sdk-'));
    const config = join(folder, 'run-bridge.yaml');
    writeFileSync(config, `destinations: { jaeger: { protocol: sdk, endpoint: "http://127.0.0.1:${OTLP_PORT}" } }\n`);
    const throughSdk = await BridgeProcess.start({ args: ['--config', config] });
    try {
      await sendSample(throughSdk.otlpUrl, 'build-mixed');
      const sent = sampleRecords('build-mixed').filter(({ recordType }) => recordType === 'SpanEnd');
      const found = await until('every span in Jaeger', async () => {
        const spans = await spansInJaeger(sampleTraceId('build-mixed'));
        return spans.length >= sent.length && spans;
      });
      expect(found.map(({ spanID }) => spanID).sort()).toEqual(sent.map(({ spanId }) => spanId).sort());
      const failed = found.filter((span) => tag(span, 'error') === true && tag(span, 'last_phase') !== undefined);
      expect(failed.length).toBeGreaterThan(0);
      const keys = failed.flatMap(({ logs }) => logs.flatMap(({ fields }) => fields.map(({ key }) => key)));
      expect(keys).toContain('exception.message');
    } finally {
      await throughSdk.remove();
      rmSync(folder, { recursive: true });
    }
  });
});
