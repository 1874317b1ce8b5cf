import { describe, expect, it } from 'vitest';
import { createDecoding } from '../../src/otlp/create-decoding.js';
import { EngineSightings } from '../../src/otlp/engine-sightings.js';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import type { OtlpEncoding } from '../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { PublicSchema } from '../../src/otlp/public-schema.js';
import type { DecodedRequest } from '../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../src/record/record-batch.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import { RecordingLogger } from '../fake/recording-logger.js';
import { sampleBodies } from '../fake/sample-run.js';
import { LARGE_SAMPLES } from '../tool/large-samples.js';
import { olderDbtTrace } from '../tool/older-dbt.js';
import { type Renaming, renamedRequest } from '../tool/renamed.js';

const SAMPLES = ['build-mixed', 'build-mixed-fusion', 'interrupted', 'parse', 'overlapping'];
const schema = PublicSchema.load();
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
  ['dbt, its scope renamed', { service: 'dbt', scope: 'tracing', keeps: [] }],
  ['names that nobody knows', { service: 'melange', scope: 'melange' }],
  ['names that nobody knows, and nothing else', { service: 'melange', scope: 'melange', keeps: [] }],
  ['no names at all', { service: null, scope: '', keeps: [] }],
];

const sightings = new EngineSightings();
const decoding = createDecoding(schema, { engineNames: [], sightings });

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
        expect(decoded.delivery.foreign).toEqual([]);
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
      const [passed, ...more] = delivery.foreign;
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
    expect(delivery.foreign.map(({ recordCount }) => recordCount)).toEqual([5]);
    const own = await decode(spans, 'protobuf');
    expect(delivery.batches.flatMap(({ records }) => records).length).toBe(linesOf(own).length);
  });
});

describe('a name that is not known', () => {
  it('is warned of once, and counted', async () => {
    const logger = new RecordingLogger();
    const seen = new EngineSightings(logger);
    const by = createDecoding(schema, { engineNames: [], sightings: seen });
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
    const by = createDecoding(schema, { engineNames: ['melange'], sightings: seen });
    for (const request of requestsOf('build-mixed', { service: 'melange', scope: 'x' }))
      await decode(request, 'json', by);
    expect(seen.list()).toEqual([]);
  });

  it('is remembered for a bounded number of names', async () => {
    const logger = new RecordingLogger();
    const seen = new EngineSightings(logger);
    const by = createDecoding(schema, { engineNames: [], sightings: seen });
    for (let count = 0; count < 200; count++) {
      await decode(olderDbtTrace({ service: `dbt-${count}` }), 'protobuf', by);
    }
    expect(logger.lines.length).toBe(50);
    expect(seen.list().length).toBe(50);
    expect(seen.countOf('passed', 'traces')).toBe(1_000);
  });

  it('of a service that is none of these is neither counted nor warned of', async () => {
    const seen = new EngineSightings();
    const by = createDecoding(schema, { engineNames: [], sightings: seen });
    const bare = withSpanName(olderDbtTrace({ service: 'airflow', scope: 'airflow' }), 'GET', []);
    expect((await decode(bare, 'protobuf', by)).delivery.foreign.length).toBe(1);
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
