import { describe, expect, it } from 'vitest';
import { createDecoding } from '../../../src/otlp/create-decoding.js';
import { EngineSightings } from '../../../src/otlp/engine-sightings.js';
import type { ExportRequest } from '../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import type { OtlpEncoding } from '../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { DecodedRequest } from '../../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { sampleBodies } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';
import { olderDbtTrace } from '../../tool/older-dbt.js';
import { type Renaming, renamedRequest } from '../../tool/renamed.js';

const SAMPLES = ['build-mixed', 'build-mixed-fusion', 'interrupted', 'parse', 'overlapping'];
const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

/** What somebody else is called, and what a resource has left that was stripped on the way. */
const NAMES: readonly (readonly [string, Renaming])[] = [
  ['dbt', { service: 'dbt', scope: 'dbt' }],
  ['dbt-oss', { service: 'dbt-oss', scope: 'dbt-oss' }],
  ['dbt, with nothing but brand and version', { service: 'dbt', scope: 'dbt', keeps: ['service.version'] }],
  ["a team's name, given by a Collector", { service: 'analytics', scope: 'dbt-oss' }],
  ["a team's name, and nothing else left", { service: 'analytics', scope: 'dbt', keeps: [] }],
  ['no service', { service: null, scope: 'dbt', keeps: [] }],
  ['dbt, its scope lost', { service: 'dbt', scope: '', keeps: [] }],
  [
    'dbt, its scope lost, with nothing but brand and version',
    { service: 'dbt', scope: '', keeps: ['service.version'] },
  ],
  ['dbt, its scope renamed', { service: 'dbt', scope: 'tracing', keeps: [] }],
  ['names that nobody knows', { service: 'melange', scope: 'melange' }],
  ['names that nobody knows, and nothing else', { service: 'melange', scope: 'melange', keeps: [] }],
  ['no names at all', { service: null, scope: '', keeps: [] }],
];

const sightings = new EngineSightings();
const decoding = createDecoding({ engineNames: [], sightings });

function decode(request: ExportRequest, encoding: OtlpEncoding, by = decoding): Promise<DecodedRequest> {
  return by.bodies[encoding][request.signal].decode(codecs[encoding].encode(request));
}

function linesOf({ delivery }: DecodedRequest): readonly string[] {
  return delivery.batches.flatMap(({ records }) => records.map(formatRecordLine));
}

/** Requests of a sample with other names. */
function requestsOf(sample: string, to?: Renaming): readonly ExportRequest[] {
  return sampleBodies(sample).map(({ signal, body }) => {
    const request = codecs.protobuf.decode(signal, body);
    return to === undefined ? request : renamedRequest(request, to);
  });
}

describe.each(NAMES)('telemetry of the engine under %s', (_, to) => {
  // Large ones are cut into pieces, each of which has to say it.
  const samples = to.scope === 'melange' && to.keeps !== undefined ? [...SAMPLES, ...LARGE_SAMPLES] : SAMPLES;
  it.each(samples)('is that of the engine, each request of %s by itself', async (sample) => {
    const asSent = requestsOf(sample, { service: 'dbt-core', scope: to.scope, keeps: ['telemetry.sdk.language'] });
    for (const [at, request] of requestsOf(sample, to).entries()) {
      const sent = asSent[at];
      if (sent === undefined) throw new Error('there are fewer requests than were renamed');
      const expected = linesOf(await decode(sent, 'protobuf'));
      for (const encoding of ['protobuf', 'json'] as const) {
        const decoded = await decode(request, encoding);
        expect(decoded.delivery.passthrough).toEqual([]);
        expect(linesOf(decoded)).toEqual(expected);
      }
    }
  });
});

describe('what is not the engine', () => {
  it.each([
    ['as its guide sets it up', {}],
    ['under the name of a build of the engine', { service: 'dbt-core' }],
    ['under a name of its own', { service: 'nightly' }],
    ['with a scope of its own', { scope: 'dbt' }],
    ['behind a Collector that takes the SDK away', { hasLanguage: false }],
    ['the same, its scope called as the engine', { hasLanguage: false, scope: 'dbt' }],
    ['the same, its scope lost', { hasLanguage: false, scope: '' }],
  ] as const)('dbt 1.x %s is passed on whole', async (_, dbt) => {
    const request = olderDbtTrace(dbt);
    for (const encoding of ['protobuf', 'json'] as const) {
      const { delivery } = await decode(request, encoding);
      expect(delivery.batches).toEqual([]);
      const [passed, ...more] = delivery.passthrough;
      expect(more).toEqual([]);
      expect(codecs.json.decode('traces', Buffer.from(passed?.body ?? ''))).toEqual(request);
    }
  });

  it("spans of libraries in dbt 1.x's process are passed on, without their SDK too", async () => {
    const trace = olderDbtTrace({ hasLanguage: false, scope: 'opentelemetry.instrumentation.psycopg2' });
    const request = withSpanName(trace, 'SELECT');
    expect((await decode(request, 'protobuf')).delivery.batches).toEqual([]);
  });

  it('another service whose span has the name of an event, and not its attributes', async () => {
    for (const name of ['Phase: load', 'worker process (42)', 'Artifact: app.zip', 'Update: a -> b']) {
      const request = withSpanName(olderDbtTrace({ service: 'ci', scope: 'ci', hasLanguage: false }), name);
      expect((await decode(request, 'protobuf')).delivery.batches, name).toEqual([]);
    }
  });

  it('log records of a Python program that is called dbt', async () => {
    const [logs] = requestsOf('build-mixed', { service: 'dbt', scope: 'root' }).filter(
      ({ signal }) => signal === 'logs',
    );
    if (logs?.signal !== 'logs') throw new Error('the sample has no log records');
    const python = withLanguage(logs, 'python');
    expect((await decode(python, 'protobuf')).delivery.batches).toEqual([]);
  });

  it('in one request with the engine each is what it is', async () => {
    const [spans] = requestsOf('build-mixed', { service: 'dbt', scope: 'dbt' }).filter(
      ({ signal }) => signal === 'traces',
    );
    const older = olderDbtTrace();
    if (spans?.signal !== 'traces' || older.signal !== 'traces') throw new Error('these are no spans');
    const mixed: ExportRequest = { signal: 'traces', resources: [...older.resources, ...spans.resources] };
    const { delivery } = await decode(mixed, 'protobuf');
    expect(delivery.passthrough.map(({ recordCount }) => recordCount)).toEqual([5]);
    const own = await decode(spans, 'protobuf');
    expect(delivery.batches.flatMap(({ records }) => records).length).toBe(linesOf(own).length);
  });
});

type Case = readonly [name: string, attributes: Readonly<Record<string, string>>];

/** One span, or one log record of this event name, of a service without a language. */
function one(signal: Signal, { service, scope }: Renaming, [name, texts]: Case): ExportRequest {
  const attributes = Object.entries(texts).map(([key, value]) => ({ key, value }));
  const spans = olderDbtTrace({ service: service ?? '', scope, hasLanguage: false });
  const [group] = spans.resources;
  const [records] = group?.scopes ?? [];
  const [span] = spans.signal === 'traces' ? (spans.resources[0]?.scopes[0]?.records ?? []) : [];
  if (spans.signal !== 'traces' || group === undefined || records === undefined || span === undefined) {
    throw new Error('this is no trace');
  }
  if (signal === 'traces') {
    const own = { ...span, name, attributes };
    return { signal, resources: [{ ...group, scopes: [{ ...records, records: [own] }] }] };
  }
  const [logs] = requestsOf('build-mixed').filter((request) => request.signal === 'logs');
  const [log] = logs?.signal === 'logs' ? (logs.resources[0]?.scopes[0]?.records ?? []) : [];
  if (log === undefined) throw new Error('the sample has no log records');
  const own = { ...log, eventName: name, attributes };
  return { signal, resources: [{ ...group, scopes: [{ ...records, records: [own] }] }] };
}

async function isTaken(signal: Signal, names: Renaming, item: Case): Promise<boolean> {
  const { delivery } = await decode(one(signal, names, item), 'protobuf');
  return delivery.passthrough.length === 0 && delivery.batches.length > 0;
}

describe('an item by itself', () => {
  const unknown = { service: 'ci', scope: 'ci' };
  const noScope = { service: 'dbt', scope: '' };
  const knownScope = { service: 'dbt', scope: 'dbt' };
  const otherScope = { service: 'dbt', scope: 'acme' };
  const bridged = { 'run_bridge.event_type': 'v1.public.events.fusion.new.Wobble' };
  const event = 'v1.public.events.fusion.log.LogMessage';

  it.each<readonly [Signal, Renaming, Case]>([
    ['traces', unknown, ['Query executed', { sql: 'select 1' }]],
    ['traces', unknown, ['Query executed (model.a.b)', { sql: 'select 1', query_outcome: 'OUTCOME_OK' }]],
    ['traces', unknown, ['Artifact: a.jar', { relative_path: 'a.jar' }]],
    ['traces', unknown, ['Artifact: app.tgz', { artifact_type: 'DOCKER_IMAGE' }]],
    ['traces', unknown, ['Node processed (17)', { name: '17' }]],
    ['traces', unknown, ['Asset parsed (logo.png)', { name: 'logo.png' }]],
    ['traces', unknown, ['Hook processed (pre-commit)', { name: 'pre-commit' }]],
    ['traces', unknown, ['Phase: build', { phase: 'BUILD_PHASE' }]],
    ['traces', unknown, ['Package "left-pad" installed', { package_name: 'left-pad', package_version: '1' }]],
    ['traces', unknown, ['gunicorn process (3)', { version: '1' }]],
    ['traces', unknown, ['gunicorn process (3)', { version: '1', package: 'gunicorn' }]],
    ['traces', unknown, ['GenericOp: x', { operation_id: 'x' }]],
    ['traces', unknown, ['Update: a -> b', { version: 'x' }]],
    ['traces', unknown, ['Thread pool wait', {}]],
    ['traces', unknown, ['Thread pool waiting for x', { unique_id: 'x' }]],
    ['traces', unknown, ['load', { phase: 'load', node_type: 'model', node_outcome: 'success' }]],
    ['traces', noScope, ['SELECT', { 'db.statement': 'select 1', 'db.system': 'postgresql' }]],
    ['traces', noScope, ['connect', {}]],
    ['traces', noScope, ['model.shop.my orders', { unique_id: 'model.shop.my orders', node_type: 'model' }]],
    ['traces', knownScope, ['SELECT', { 'db.statement': 'select 1', 'db.system': 'postgresql' }]],
    ['traces', knownScope, ['GET', { 'http.url': 'x' }]],
    ['traces', knownScope, ['model.shop.my orders', { unique_id: 'model.shop.my orders' }]],
    ['logs', noScope, ['', { 'code.file.path': 'x.py' }]],
    ['logs', noScope, ['', {}]],
    ['logs', knownScope, ['', { 'code.file.path': 'x.py' }]],
    ['logs', unknown, ['v1.events.user.created', {}]],
    ['logs', unknown, ['app.log', { 'code.file.path': 'x.py' }]],
  ])('of %s under %o is another service’s: %o', async (signal, names, item) => {
    expect(await isTaken(signal, names, item)).toBe(false);
  });

  const node = { unique_id: 'model.a.b', node_type: 'NODE_TYPE_MODEL', node_outcome: 'NODE_OUTCOME_SUCCESS' };
  it.each<readonly [Signal, Renaming, Case]>([
    ['traces', unknown, ['Microbatch (model.a.b) 2024', { unique_id: 'model.a.b', batch_size: 'BATCH_SIZE_DAY' }]],
    ['traces', otherScope, ['Microbatch (model.a.b) 2024', { unique_id: 'model.a.b', batch_size: 'BATCH_SIZE_DAY' }]],
    ['traces', unknown, ['Node compiled (model.a.b)', node]],
    ['traces', otherScope, ['Node compiled (model.a.b)', node]],
    ['traces', noScope, ['Node compiled (model.a.b)', node]],
    ['traces', unknown, ['Node(model.a.b)', { ...node, phase: 'EXECUTION_PHASE_RUN' }]],
    ['traces', unknown, ['Thread pool wait', { unique_id: 'model.a.b' }]],
    ['traces', noScope, ['Thread pool wait', {}]],
    ['traces', unknown, ['model.shop.orders', bridged]],
    ['traces', knownScope, ['model.shop.orders', { ...bridged, 'db.system.name': 'duckdb' }]],
    ['traces', otherScope, ['Wobble: x', bridged]],
    ['logs', unknown, ['x.y.Z', bridged]],
    ['logs', unknown, [event, {}]],
    ['logs', unknown, [event.replace('fusion', 'dbt'), {}]],
    ['logs', unknown, [event.replace('v1.public', 'v2'), {}]],
    ['logs', unknown, ['message', { original_severity_text: 'INFO' }]],
    ['logs', unknown, ['', { output_format: 'SHOW_RESULT_OUTPUT_FORMAT_JSON', content: '[]' }]],
  ])('of %s under %o is the engine’s: %o', async (signal, names, item) => {
    expect(await isTaken(signal, names, item)).toBe(true);
  });
});

describe('a name that is not known', () => {
  it('is warned of once, and counted', async () => {
    const logger = new RecordingLogger();
    const seen = new EngineSightings(logger);
    const by = createDecoding({ engineNames: [], sightings: seen });
    for (const service of ['team-a', 'team-b']) {
      for (const request of requestsOf('build-mixed', { service, scope: 'melange' })) await decode(request, 'json', by);
    }
    expect(logger.lines).toEqual([
      {
        level: 'warn',
        fields: { service: 'team-a', scope: 'melange' },
        message: expect.stringContaining('engine-names'),
      },
    ]);
    expect(seen.countOf('new', 'traces')).toBe(2 * itemsOf('build-mixed', 'traces'));
    expect(seen.countOf('new', 'logs')).toBe(2 * itemsOf('build-mixed', 'logs'));
    expect(seen.countOf('passed', 'traces')).toBe(0);
  });

  it('is known by the setting', async () => {
    const seen = new EngineSightings();
    const by = createDecoding({ engineNames: ['melange'], sightings: seen });
    for (const request of requestsOf('build-mixed', { service: 'melange', scope: 'x' }))
      await decode(request, 'json', by);
    expect(seen.list()).toEqual([]);
  });

  it('is remembered for a bounded number of names', async () => {
    const logger = new RecordingLogger();
    const seen = new EngineSightings(logger);
    const by = createDecoding({ engineNames: [], sightings: seen });
    for (let count = 0; count < 200; count++) {
      await decode(olderDbtTrace({ service: `dbt-${count}` }), 'protobuf', by);
    }
    expect(logger.lines.length).toBe(50);
    expect(seen.list().length).toBe(50);
    expect(seen.countOf('passed', 'traces')).toBe(1_000);
  });

  it('is counted where a sign is deep in a span, and not for log records of a known engine outside of any trace', async () => {
    const seen = new EngineSightings();
    const by = createDecoding({ engineNames: [], sightings: seen });
    const span = one('traces', { service: 'airflow', scope: 'airflow' }, ['load', {}]);
    if (span.signal !== 'traces') throw new Error('this is no span');
    const payload = { key: 'payload', value: { entries: [{ key: 'sql', value: 'select 1' }] } };
    const resources = span.resources.map((group) => ({
      ...group,
      scopes: group.scopes.map((scope) => ({
        ...scope,
        records: scope.records.map((own) => ({ ...own, attributes: [payload] })),
      })),
    }));
    await decode({ ...span, resources }, 'protobuf', by);
    expect(seen.countOf('passed', 'traces')).toBe(1);
    for (const request of requestsOf('build-mixed', { service: 'dbt', scope: 'dbt' })) {
      if (request.signal !== 'logs') continue;
      const outside = request.resources.map((group) => ({
        ...group,
        scopes: group.scopes.map((scope) => ({
          ...scope,
          records: scope.records.map((log) => ({ ...log, traceId: '', spanId: '' })),
        })),
      }));
      const { delivery } = await decode({ ...request, resources: outside }, 'protobuf', by);
      expect(delivery.batches).toEqual([]);
    }
    expect(seen.countOf('passed', 'logs')).toBe(0);
  });

  it('of a service that is none of these is neither counted nor warned of', async () => {
    const seen = new EngineSightings();
    const by = createDecoding({ engineNames: [], sightings: seen });
    const bare = withSpanName(olderDbtTrace({ service: 'airflow', scope: 'airflow' }), 'GET', []);
    expect((await decode(bare, 'protobuf', by)).delivery.passthrough.length).toBe(1);
    expect(seen.countOf('passed', 'traces')).toBe(0);
  });
});

function itemsOf(sample: string, signal: Signal): number {
  return requestsOf(sample)
    .filter((request) => request.signal === signal)
    .flatMap(({ resources }) => resources.flatMap(({ scopes }) => scopes.map(({ records }) => records.length)))
    .reduce((sum, count) => sum + count, 0);
}

function withSpanName(request: ExportRequest, name: string, attributes?: []): ExportRequest {
  if (request.signal !== 'traces') throw new Error('these are no spans');
  const resources = request.resources.map((group) => ({
    ...group,
    scopes: group.scopes.map((scope) => ({
      ...scope,
      records: scope.records.map((span) => ({ ...span, name, ...(attributes && { attributes }) })),
    })),
  }));
  return { ...request, resources };
}

function withLanguage(request: Extract<ExportRequest, { signal: 'logs' }>, language: string): ExportRequest {
  const resources = request.resources.map((group) => ({
    ...group,
    resource: {
      ...group.resource,
      attributes: group.resource.attributes.map((one) =>
        one.key === 'telemetry.sdk.language' ? { ...one, value: language } : one,
      ),
    },
  }));
  return { ...request, resources };
}
