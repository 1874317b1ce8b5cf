import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { SpanEnd } from '../../src/record/telemetry-record.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { pythonWith } from '../tool/python-venv.js';
import { sendSample } from '../tool/send-sample.js';

interface Span {
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: number;
  readonly start: string;
  readonly end: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number; readonly message: string };
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly links: readonly { readonly spanId: string; readonly attributes: Readonly<Record<string, unknown>> }[];
}

interface Exported {
  readonly spans: readonly Span[];
  readonly logs: readonly { readonly eventName: string; readonly body: string; readonly spanId: string | null }[];
  /** All exported bytes, for looking what is not in them. */
  readonly bytes: string;
}

const ERROR = 2;
const CLIENT = 3;
let python: string;

beforeAll(() => {
  python = pythonWith('otlp');
});

/** Sends a sample's OTLP bodies through the built bridge and decodes what it exports with OpenTelemetry's Python classes. */
async function reExport(run: string): Promise<Exported> {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-exported-'));
  const server = await captureInto(folder);
  const { port } = server.address() as AddressInfo;
  const bridge = await BridgeProcess.start({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
  try {
    await sendSample(bridge.otlpUrl, run);
    await bridge.finished(sampleTraceId(run));
    expect(await bridge.stop()).toBe(0);
    const decoded = execFileSync(python, [join('test', 'tool', 'decode_otlp.py'), folder], { maxBuffer: 1 << 28 });
    const bytes = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'latin1'))
      .join('');
    return { ...(JSON.parse(decoded.toString('utf8')) as Exported), bytes };
  } finally {
    server.closeAllConnections();
    server.close();
    await bridge.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

function captureInto(folder: string): Promise<Server> {
  let count = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const signal = request.url?.includes('traces') ? 'traces' : 'logs';
      writeFileSync(join(folder, `${String(count++).padStart(4, '0')}-${signal}.bin`), Buffer.concat(chunks));
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const endedSpans = (run: string) =>
  sampleRecords(run).filter((record): record is SpanEnd => record.recordType === 'SpanEnd');
const tree = (spans: readonly { spanId: string | null; parentSpanId: string | null }[]) =>
  spans.map(({ spanId, parentSpanId }) => `${spanId} under ${parentSpanId}`).sort();
const processed = ({ spans }: Exported, uniqueId: string) =>
  spans.find(
    ({ name, attributes }) => name.startsWith('Node processed') && String(attributes.unique_id).startsWith(uniqueId),
  );
const exception = (span: Span | undefined) => span?.events.find(({ name }) => name === 'exception')?.attributes;

describe('the re-export of build-mixed', () => {
  let exported: Exported;
  beforeAll(async () => {
    exported = await reExport('build-mixed');
  });

  it('has every span once, as it was, in its place', () => {
    expect(tree(exported.spans)).toEqual(tree(endedSpans('build-mixed')));
    const times = (spans: readonly (readonly string[])[]) => spans.map(String).sort();
    expect(times(exported.spans.map(({ spanId, start, end }) => [spanId, start, end]))).toEqual(
      times(
        endedSpans('build-mixed').map((span) => [
          span.spanId,
          String(span.startTimeUnixNano),
          String(span.endTimeUnixNano),
        ]),
      ),
    );
  });

  it('has every log record, and each as an event too, as it has those that are made', () => {
    const logs = sampleRecords('build-mixed').filter(({ recordType }) => recordType === 'LogRecord');
    const made = exported.spans.flatMap(({ spanId, events }) =>
      events.filter(({ attributes }) => !('severity_text' in attributes)).map(({ name }) => `${spanId} ${name}`),
    );
    expect(made.some((one) => one.endsWith(' exception'))).toBe(true);
    expect(exported.logs.map(({ spanId, eventName }) => `${spanId} ${eventName}`).sort()).toEqual(
      [...logs.map(({ spanId, eventType }) => `${spanId} ${eventType}`), ...made].sort(),
    );
    const events = exported.spans
      .flatMap(({ events }) => events)
      .filter(({ attributes }) => 'severity_text' in attributes);
    expect(events).toHaveLength(logs.length);
  });

  it('says which nodes failed, and why', () => {
    const failed = processed(exported, 'test.shop.status_strict');
    expect(failed?.status).toEqual({ code: ERROR, message: 'test failed: 1 failing row' });
    expect(failed?.attributes).toMatchObject({ test_outcome: 'TEST_OUTCOME_FAILED', failing_rows: 1 });
    const broken = processed(exported, 'model.shop.broken');
    expect(broken?.status.code).toBe(ERROR);
    expect(exception(broken)?.['exception.message']).toContain('nonexistent_column');
    expect(exception(processed(exported, 'unit_test.shop.ut_target'))).toBeDefined();
    const warned = processed(exported, 'test.shop.orders_customer_warn');
    expect(warned?.status.code).not.toBe(ERROR);
    expect(warned?.events.map(({ name }) => name)).toContain('test_warned');
    expect(processed(exported, 'model.shop.revenue')?.status.code).not.toBe(ERROR);
  });

  it('links a skipped node to the node that caused it', () => {
    const skipped = processed(exported, 'model.shop.after_broken');
    expect(skipped?.attributes['node_skip_upstream_detail.upstream_unique_id']).toBe('model.shop.broken');
    expect(skipped?.links.map(({ spanId }) => spanId)).toContain(processed(exported, 'model.shop.broken')?.spanId);
  });

  it('has queries as clients of a database, without their literals', () => {
    const queries = exported.spans.filter(({ name }) => name.startsWith('Query executed'));
    expect(new Set(queries.map(({ kind }) => kind))).toEqual(new Set([CLIENT]));
    expect(queries.every(({ attributes }) => attributes['db.system.name'] === 'duckdb')).toBe(true);
    expect(queries.some(({ attributes }) => String(attributes['db.query.text']).includes('status = ?'))).toBe(true);
    for (const literal of ["'paid'", "'refunded'", "''paid''", '"connection_name"']) {
      expect(exported.bytes.includes(literal), literal).toBe(false);
    }
  });

  it('has names that do not change from run to run', () => {
    const invocation = exported.spans.find(({ attributes }) => attributes.raw_command !== undefined);
    expect(invocation?.name).toBe('dbt invocation (build)');
    expect(exported.spans.filter(({ name }) => /\(nodes: \d+\)|[0-9a-f]{8}-[0-9a-f]{4}/.test(name))).toEqual([]);
  });
});

describe.each([
  ['fail-fast', 'error'],
  ['interrupted', 'canceled'],
])('the re-export of %s, whose invocation span never came', (run, verdict) => {
  let exported: Exported;
  beforeAll(async () => {
    exported = await reExport(run);
  });

  it('has a root with the verdict, and no orphan', () => {
    const ids = new Set(exported.spans.map(({ spanId }) => spanId));
    expect(exported.spans.filter(({ parentSpanId }) => parentSpanId !== null && !ids.has(parentSpanId))).toEqual([]);
    const root = exported.spans.find(({ name }) => name.startsWith('dbt invocation'));
    expect(root?.attributes).toMatchObject({ 'run_bridge.synthetic': true, 'run_bridge.verdict': verdict });
    expect(root?.status.code).toBe(ERROR);
    const started = sampleRecords(run).find(({ eventType }) => eventType.endsWith('.Invocation'));
    expect(root?.spanId).toBe(started?.spanId);
  });

  it('has every span that ended', () => {
    const ended = new Set(tree(endedSpans(run)));
    expect(new Set(tree(exported.spans).filter((place) => ended.has(place)))).toEqual(ended);
  });
});

describe('the re-export of interrupted', () => {
  it('says of every interrupted node that it was canceled, whatever the engine said', async () => {
    const exported = await reExport('interrupted');
    for (const uniqueId of ['model.shop.slow_a', 'model.shop.slow_b']) {
      expect(processed(exported, uniqueId)).toMatchObject({
        status: { code: ERROR },
        attributes: { 'run_bridge.node.verdict': 'canceled', 'error.type': 'canceled' },
      });
    }
  });
});

describe('the re-export of joined', () => {
  it('hangs both roots below the orchestrator’s span', async () => {
    const exported = await reExport('joined');
    expect(tree(exported.spans)).toEqual(tree(endedSpans('joined')));
    const roots = exported.spans.filter(({ parentSpanId }) => parentSpanId === 'b7ad6b7169203331');
    expect(roots.map(({ name }) => name.split(' ').slice(0, 2).join(' ')).sort()).toEqual([
      'dbt invocation',
      'dbt process',
    ]);
    expect(exported.spans.filter(({ status }) => status.code === ERROR)).toEqual([]);
  });
});
