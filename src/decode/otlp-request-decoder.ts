import type { AnyValue, KeyValue } from '../otlp/any-value.js';
import type { ExportRequest, OtlpLogRecord, OtlpSpan, ResourceGroup, ScopeGroup } from '../otlp/export-request.js';
import type { OtlpCodec } from '../otlp/otlp-codec.js';
import { parseSpanId, parseTraceId } from '../record/ids.js';
import type { ForeignBatch, RecordBatch, Signal } from '../record/record-batch.js';
import { isReserved, type Resource, type ResourceValue, resourceKey } from '../record/resource.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { AttributeWriter, valueJson } from './attribute-json.js';
import type { AttributeSchema } from './attribute-schema.js';
import { decodeLog } from './log-decoder.js';
import type { DecodedRequest, PieceDecoder, RequestDecoder } from './request-decoder.js';
import { decodeSpan, type Rejection } from './span-decoder.js';

/** Service and scope names of the engine's builds; whatever else comes is another service's. */
const ENGINE_NAMES = new Set(['dbt-core', 'dbt-fusion', 'dbt-tracing']);
/** Spans that a bridge has mapped already are another bridge's exports: they are passed on as they are. */
const MAPPED_BY = 'telemetry.distro.name';

/** Decodes OTLP requests of the engine into records and keeps other services' telemetry as it came. */
export class OtlpRequestDecoder implements RequestDecoder {
  private readonly writer: AttributeWriter;

  /** @param json writes other services' telemetry as OTLP JSON */
  constructor(
    private readonly schema: AttributeSchema,
    private readonly json: OtlpCodec,
  ) {
    this.writer = new AttributeWriter(schema);
  }

  decode(request: ExportRequest): DecodedRequest {
    const collected = new Collector();
    const foreign: ForeignBatch[] = [];
    if (request.signal === 'traces') {
      for (const group of request.resources) this.decodeGroup(group, collected, isValidSpan, this.spanRecords);
    } else {
      for (const group of request.resources) this.decodeGroup(group, collected, isAnyLog, this.logRecords);
    }
    const rest = foreignPart(request, collected);
    if (rest.recordCount > 0) {
      const body = Buffer.from(this.json.encode(rest.request)).toString('utf8');
      foreign.push({ signal: request.signal, body, recordCount: rest.recordCount });
    }
    return {
      delivery: { batches: collected.batches(), foreign },
      rejectedCount: collected.rejectedCount,
      rejectionMessage: collected.rejectionMessage(request.signal),
    };
  }

  private decodeGroup<T extends OtlpSpan | OtlpLogRecord>(
    group: ResourceGroup<T>,
    collected: Collector,
    isKept: (record: T) => boolean,
    toRecords: (record: T) => readonly TelemetryRecord[] | Rejection,
  ): void {
    for (const scope of group.scopes) {
      if (isEngine(group, scope)) {
        const resource = resourceOf(group, scope);
        const key = resourceKey(resource);
        for (const record of scope.records) {
          // A log record outside any trace has no run to join; it is kept and passed on like another service's.
          if ('body' in record && parseTraceId(record.traceId) === undefined) collected.pass(record);
          else collected.add(resource, key, toRecords(record));
        }
      } else {
        for (const record of scope.records) {
          if (isKept(record)) collected.pass(record);
          else collected.reject('without a valid trace id and span id');
        }
      }
    }
  }

  private readonly spanRecords = (span: OtlpSpan) => decodeSpan(span, this.schema, this.writer);
  private readonly logRecords = (log: OtlpLogRecord): readonly TelemetryRecord[] | Rejection => {
    const decoded = decodeLog(log, this.schema, this.writer);
    return typeof decoded === 'string' ? decoded : [decoded];
  };
}

/** Reads any request of one signal and encoding, by way of its messages. */
export class GeneralDecoder implements PieceDecoder {
  constructor(
    private readonly signal: Signal,
    private readonly general: { readonly codec: OtlpCodec; readonly decoder: RequestDecoder },
  ) {}

  decode(body: Uint8Array): DecodedRequest {
    return this.general.decoder.decode(this.general.codec.decode(this.signal, body));
  }
}

/** Sorts what a request brought: records by trace and resource, what is passed on, what is rejected and why. */
class Collector {
  readonly passed = new Set<OtlpSpan | OtlpLogRecord>();
  rejectedCount = 0;
  private readonly reasons = new Set<Rejection>();
  private readonly byTrace = new Map<string, { resource: Resource; records: TelemetryRecord[] }>();

  /** @param key equal for equal resources */
  add(resource: Resource, key: string, decoded: readonly TelemetryRecord[] | Rejection): void {
    if (typeof decoded === 'string') {
      this.reject(decoded);
      return;
    }
    const [first] = decoded;
    if (first === undefined) return;
    const traceKey = first.traceId + key;
    const batch = this.byTrace.get(traceKey);
    if (batch === undefined) this.byTrace.set(traceKey, { resource, records: [...decoded] });
    else for (const record of decoded) batch.records.push(record);
  }

  pass(record: OtlpSpan | OtlpLogRecord): void {
    this.passed.add(record);
  }

  reject(reason: Rejection): void {
    this.rejectedCount++;
    this.reasons.add(reason);
  }

  batches(): RecordBatch[] {
    return [...this.byTrace.values()].flatMap(({ resource, records }) => {
      const [first] = records;
      return first === undefined ? [] : [{ traceId: first.traceId, resource, records }];
    });
  }

  rejectionMessage(signal: string): string {
    if (this.rejectedCount === 0) return '';
    const what = signal === 'traces' ? 'spans' : 'log records';
    return `${this.rejectedCount} ${what} ${[...this.reasons].join(' or ')} were not kept; the rest was`;
  }
}

function foreignPart(request: ExportRequest, collected: Collector): { request: ExportRequest; recordCount: number } {
  const recordCount = collected.passed.size;
  if (request.signal === 'traces') {
    return { request: { signal: 'traces', resources: keepPassed(request.resources, collected) }, recordCount };
  }
  return { request: { signal: 'logs', resources: keepPassed(request.resources, collected) }, recordCount };
}

function keepPassed<T extends OtlpSpan | OtlpLogRecord>(
  groups: readonly ResourceGroup<T>[],
  collected: Collector,
): ResourceGroup<T>[] {
  if (collected.passed.size === 0) return [];
  return groups
    .map((group) => ({
      ...group,
      scopes: group.scopes
        .map((scope) => ({ ...scope, records: scope.records.filter((record) => collected.passed.has(record)) }))
        .filter((scope) => scope.records.length > 0),
    }))
    .filter((group) => group.scopes.length > 0);
}

/** Whether the engine sent a scope's records, by its service or scope name. */
export function isEngine<T>(group: ResourceGroup<T>, scope: ScopeGroup<T>): boolean {
  if (attribute(group, MAPPED_BY) === 'run-bridge') return false;
  const service = attribute(group, 'service.name');
  return (typeof service === 'string' && ENGINE_NAMES.has(service)) || ENGINE_NAMES.has(scope.scope.name);
}

function attribute<T>(group: ResourceGroup<T>, name: string): AnyValue | undefined {
  return group.resource.attributes.find(({ key }) => key === name)?.value;
}

function isValidSpan(span: OtlpSpan): boolean {
  return parseTraceId(span.traceId) !== undefined && parseSpanId(span.spanId) !== undefined;
}

function isAnyLog(): boolean {
  return true;
}

/** The resource and scope of a group as records carry them. */
export function resourceOf<T>(group: ResourceGroup<T>, scope: ScopeGroup<T>): Resource {
  const attributes: Record<string, ResourceValue> = {};
  for (const { key, value: sent } of group.resource.attributes) {
    const value = resourceValue({ key, value: sent });
    if (!isReserved(key, value)) attributes[key] = value;
  }
  return { attributes, scope: { name: scope.scope.name, version: scope.scope.version } };
}

/** Scalars and lists of them as they are; anything deeper as its JSON text. */
function resourceValue({ value }: KeyValue): ResourceValue {
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) {
    return (value as readonly AnyValue[]).map((item) => (typeof item === 'string' ? item : valueJson(item)));
  }
  return value === null ? '' : valueJson(value);
}
