import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../src/export/mapping/otel-run-mapper.js';
import { PassthroughRedaction } from '../../../src/export/passthrough-redaction.js';
import { RequestEncoder } from '../../../src/export/wire/export-request.js';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import type { ExportRequest, KeyValue } from '../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../../src/record/record-batch.js';
import type { RedactionLevel } from '../../../src/redaction/known-names.js';
import { decodeBody, decodeRequest } from '../../fake/decode-at-once.js';
import { bodiesIn } from '../../fake/sample-run.js';
import { olderDbtTrace } from '../../tool/older-dbt.js';
import { renamedRequest } from '../../tool/renamed.js';
import { pushRecords } from '../../unit/export/mapping/mapped-run.js';

const FOLDER = 'test/fixture/redaction/otlp';
/** What the project of test/fixture/redaction has in its strings, numbers and comments. */
const MARKERS = /zq[a-z]+\d{3}|7700\d{5}|7700\.\d{5}|7\.7\d{6}e8|7700-\d\d-\d\d|0x7700\d?/gi;
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements'];
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

/** The marked run as nobody would know it: neither by the names of its service, scope, spans and events nor by its language. */
function disguised(): readonly ExportRequest[] {
  return bodiesIn(FOLDER).map(({ signal, body }) => {
    const request = renamedRequest(codecs.protobuf.decode(signal, body), { service: 'melange', scope: 'x', keeps: [] });
    if (request.signal === 'traces') {
      return mapRecords(request, (span) => ({ ...span, name: `step ${span.spanId}`, attributes: plain(span) }));
    }
    return mapRecords(request, (log) => ({ ...log, eventName: 'message' }));
  });
}

/** Attributes without values of the engine's enums. */
function plain({ attributes }: { readonly attributes: readonly KeyValue[] }): readonly KeyValue[] {
  return attributes.map(({ key, value }) => ({
    key,
    value: typeof value === 'string' && /^[A-Z]+(?:_[A-Z]+)+$/.test(value) ? value.toLowerCase() : value,
  }));
}

function mapRecords<R extends ExportRequest>(
  request: R,
  change: (record: R['resources'][number]['scopes'][number]['records'][number]) => unknown,
): ExportRequest {
  const resources = request.resources.map((group) => ({
    ...group,
    scopes: group.scopes.map((scope) => ({ ...scope, records: scope.records.map(change) })),
  }));
  return { ...request, resources } as ExportRequest;
}

/** What is passed on of requests, as it leaves the machine. */
function passedOn(requests: readonly ExportRequest[], level: RedactionLevel): string {
  const redaction = new PassthroughRedaction(level, []);
  const passed = requests.flatMap((request) => decodeRequest(request).delivery.passthrough);
  return passed.map(({ signal, body }) => redaction.redact(signal, body)).join('\n');
}

function markersIn(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().match(MARKERS))].sort();
}

describe.each(LEVELS)('at level %s', (level) => {
  it('a marked run in which nothing but attributes is the engine’s is passed on, and shows no value', () => {
    const requests = disguised();
    const spans = requests.filter(({ signal }) => signal === 'traces');
    expect(spans.flatMap((request) => decodeRequest(request).delivery.batches)).toEqual([]);
    expect(markersIn(passedOn(requests, 'off')).length).toBeGreaterThan(20);
    expect(markersIn(passedOn(requests, level))).toEqual([]);
  });

  it('a marked run under the name of dbt, said to be of Python, shows no value', () => {
    const requests = bodiesIn(FOLDER).map(({ signal, body }) => {
      const request = renamedRequest(codecs.protobuf.decode(signal, body), { service: 'dbt', scope: 'x', keeps: [] });
      return withResource(request, [{ key: 'telemetry.sdk.language', value: 'python' }]);
    });
    expect(requests.flatMap((request) => decodeRequest(request).delivery.batches)).toEqual([]);
    expect(markersIn(passedOn(requests, level))).toEqual([]);
  });

  it('log records of the engine outside any trace show no value', () => {
    const requests = bodiesIn(FOLDER)
      .filter(({ signal }) => signal === 'logs')
      .map(({ signal, body }) => {
        const request = codecs.protobuf.decode(signal, body);
        const named = renamedRequest(request, { service: 'melange', scope: 'x', keeps: [] });
        return named.signal === 'logs' ? mapRecords(named, (log) => ({ ...log, traceId: '', spanId: '' })) : named;
      });
    expect(markersIn(passedOn(requests, 'off')).length).toBeGreaterThan(5);
    expect(markersIn(passedOn(requests, level))).toEqual([]);
  });

  it('statements that libraries record in the process of dbt 1.x show no value', () => {
    const older = olderDbtTrace({ scope: 'opentelemetry.instrumentation.psycopg2' });
    if (older.signal !== 'traces') throw new Error('these are no spans');
    const request = mapRecords(older, (span) => ({
      ...span,
      name: 'SELECT',
      attributes: [
        { key: 'db.statement', value: "select 'zqsecret001' from main.customers" },
        { key: 'db.query.parameter.0', value: 'zqsecret002' },
      ],
      events: [event('exception', { 'exception.message': "no such value 'zqsecret003'" })],
      status: { code: 2, message: "(SyntaxError) near 'zqsecret004'" },
    }));
    expect(markersIn(passedOn([request], 'off')).length).toBe(4);
    expect(markersIn(passedOn([request], level))).toEqual([]);
    expect(passedOn([request], level)).toContain('exception.message');
  });
});

describe('where a sign of the engine stands', () => {
  const secret = "select 'zqsecret009'";
  const sql: readonly KeyValue[] = [{ key: 'sql', value: secret }];
  const inMap: readonly KeyValue[] = [{ key: 'payload', value: { entries: sql } }];
  const note: readonly KeyValue[] = [{ key: 'note', value: secret }];
  const more = (...keys: readonly string[]): readonly KeyValue[] => [
    ...keys.map((key) => ({ key, value: key === 'output_format' ? 'text' : 'x y' })),
    ...note,
  ];
  const link = { traceId: '0af7651916cd43dd8448eb211c80319d', spanId: '00000000000000bb', traceState: '', flags: 0 };
  const base = olderDbtTrace({ service: 'melange', scope: 'x' });
  const spans = (change: object) => mapRecords(base, (span) => ({ ...span, attributes: [], ...change }));
  const logs = (change: object) => {
    const [request] = bodiesIn(FOLDER).flatMap(({ signal, body }) =>
      signal === 'logs' ? [codecs.protobuf.decode(signal, body)] : [],
    );
    if (request === undefined) throw new Error('there are no log records');
    const passthrough = withResource(renamedRequest(request, { service: 'melange', scope: 'x', keeps: [] }), [
      { key: 'telemetry.sdk.language', value: 'python' },
    ]);
    const plainLog = { attributes: [], body: '', eventName: '' };
    return mapRecords(passthrough, (log) => ({ ...log, ...plainLog, ...change }));
  };
  const inScope = (attributes: readonly KeyValue[]): ExportRequest => {
    const resources = spans({}).resources.map((group) => ({
      ...group,
      scopes: group.scopes.map((scope) => ({ ...scope, scope: { ...scope.scope, attributes } })),
    }));
    return { ...base, resources } as ExportRequest;
  };
  const twoScopes = (): ExportRequest => {
    const [first, second] = [spans({ attributes: more('unique_id') }), spans({ attributes: note })];
    const resources = first.resources.map((group, at) => ({
      ...group,
      scopes: [...group.scopes, ...(second.resources[at]?.scopes ?? [])],
    }));
    return { ...base, resources } as ExportRequest;
  };

  it.each<readonly [string, () => ExportRequest]>([
    ['in an event', () => spans({ events: [{ ...event('e', {}), attributes: sql }] })],
    ['in a link', () => spans({ links: [{ ...link, attributes: sql, droppedAttributesCount: 0 }] })],
    ['in the resource', () => withResource(spans({}), sql)],
    ['in the scope', () => inScope(sql)],
    ['in a map', () => spans({ attributes: inMap })],
    ['in a map of the resource', () => withResource(spans({}), inMap)],
    ['in a body', () => logs({ body: { entries: sql } })],
    ['in another scope', twoScopes],
    ['in an enum', () => spans({ attributes: [...note, { key: 'phase', value: 'EXECUTION_PHASE_RUN' }] })],
    ['in an event name', () => logs({ attributes: note, eventName: 'v3.events.engine.log.LogMessage' })],
    ['in a command', () => spans({ attributes: more('raw_command') })],
    ['in a difference', () => logs({ attributes: more('self_value') })],
    ['in an error', () => spans({ attributes: more('query_error_adapter_message') })],
    ['in content and its format', () => logs({ attributes: more('content', 'output_format') })],
    ['beside a name like the engine’s', () => spans({ name: `Query executed (${secret})`, attributes: more('sql') })],
    [
      'beside names that are sentences',
      () => spans({ attributes: [...more('sql'), { key: 'target', value: 'hello zqsecret009' }] }),
    ],
    [
      'beside a name that is a statement',
      () => spans({ attributes: [...more('sql'), { key: 'name', value: secret }] }),
    ],
  ])('%s, nothing is shown', (_, request) => {
    const made = withResource(request(), [{ key: 'telemetry.sdk.language', value: 'python' }]);
    expect(markersIn(passedOn([made], 'off'))).toEqual(['zqsecret009']);
    expect(markersIn(passedOn([made], 'literals'))).toEqual([]);
  });
});

describe('what is passed on and is not redacted', () => {
  it('is whole where it is dbt 1.x, which sends no SQL', () => {
    const request = olderDbtTrace();
    expect(passedOn([request], 'literals')).toBe(passedOn([request], 'off'));
    expect(JSON.parse(passedOn([request], 'literals'))).toEqual(
      JSON.parse(Buffer.from(codecs.json.encode(request)).toString('utf8')),
    );
  });

  it('is byte for byte what another service sent', () => {
    const request = mapRecords(olderDbtTrace({ service: 'airflow', scope: 'airflow' }), (span) => ({
      ...span,
      attributes: [{ key: 'db.statement', value: "select 'kept'" }],
    }));
    expect(passedOn([request], 'literals')).toBe(passedOn([request], 'off'));
    expect(passedOn([request], 'literals')).toContain("select 'kept'");
  });

  it('is byte for byte what another bridge exports, which has redacted it as it was told to', async () => {
    const redaction = new PassthroughRedaction('literals', []);
    const bodies = await exports('literals');
    expect(bodies.map((body) => redaction.redact(signalOf(body), body))).toEqual(bodies);
  });
});

/** The marked run as a bridge exports it, as JSON. */
async function exports(redaction: RedactionLevel): Promise<readonly string[]> {
  const byTrace = new Map<string, LoggedRecord[]>();
  for (const { signal, body } of bodiesIn(FOLDER)) {
    for (const { traceId, resource, records } of decodeBody(signal, body).delivery.batches) {
      const log = byTrace.get(traceId) ?? [];
      byTrace.set(traceId, log);
      for (const record of records) log.push({ record, resource, offset: log.length, endOffset: log.length + 1 });
    }
  }
  const encoder = new RequestEncoder('json', async () => codecs, Infinity);
  const bodies: string[] = [];
  for (const log of byTrace.values()) {
    const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, redaction });
    pushRecords(mapper, log);
    const items = mapper.take(true);
    for (const signal of ['traces', 'logs'] as const) {
      const { body } = await encoder.encode({ signal, ranges: items[signal] });
      bodies.push(Buffer.from(body).toString('utf8'));
    }
  }
  return bodies;
}

function signalOf(body: string): Signal {
  return body.startsWith('{"resourceSpans"') ? 'traces' : 'logs';
}

function withResource(request: ExportRequest, more: readonly KeyValue[]): ExportRequest {
  const resources = request.resources.map((group) => ({
    ...group,
    resource: { ...group.resource, attributes: [...group.resource.attributes, ...more] },
  }));
  return { ...request, resources } as ExportRequest;
}

function event(name: string, attributes: Readonly<Record<string, string>>) {
  const list = Object.entries(attributes).map(([key, value]) => ({ key, value }));
  return { timeUnixNano: 1n, name, attributes: list, droppedAttributesCount: 0 };
}
