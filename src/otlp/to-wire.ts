import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  OtlpSpanEvent,
  OtlpSpanLink,
} from './export-request.js';

/** How an encoding spells what protobufjs and JSON spell differently. */
export interface WireSpelling {
  /** @param hex lowercase hexadecimal, not empty. */
  id(hex: string): unknown;
  int64(value: bigint): unknown;
  double(value: number): unknown;
  bytes(value: Uint8Array): unknown;
}

type WireObject = Readonly<Record<string, unknown>>;

/**
 * Builds the object that protobufjs encodes, or that is OTLP's JSON: the same lowerCamelCase names in both.
 * Defaults (empty, zero) are `undefined`, which both leave out.
 */
export function requestToWire(request: ExportRequest, spelling: WireSpelling): WireObject {
  const builder = new WireBuilder(spelling);
  return request.signal === 'traces'
    ? {
        resourceSpans: request.resources.map((group) => ({
          resource: builder.resource(group.resource),
          scopeSpans: group.scopes.map(({ scope, records, schemaUrl }) => ({
            scope: builder.scope(scope),
            spans: records.map((span) => builder.span(span)),
            schemaUrl: text(schemaUrl),
          })),
          schemaUrl: text(group.schemaUrl),
        })),
      }
    : {
        resourceLogs: request.resources.map((group) => ({
          resource: builder.resource(group.resource),
          scopeLogs: group.scopes.map(({ scope, records, schemaUrl }) => ({
            scope: builder.scope(scope),
            logRecords: records.map((record) => builder.logRecord(record)),
            schemaUrl: text(schemaUrl),
          })),
          schemaUrl: text(group.schemaUrl),
        })),
      };
}

class WireBuilder {
  constructor(private readonly spelling: WireSpelling) {}

  resource(resource: OtlpResource): WireObject {
    return {
      attributes: this.attributes(resource.attributes),
      droppedAttributesCount: count(resource.droppedAttributesCount),
      entityRefs: list(resource.entityRefs ?? [], ({ schemaUrl, type, idKeys, descriptionKeys }) => ({
        schemaUrl: text(schemaUrl),
        type: text(type),
        idKeys,
        descriptionKeys,
      })),
    };
  }

  scope(scope: OtlpScope): WireObject {
    return {
      name: text(scope.name),
      version: text(scope.version),
      attributes: this.attributes(scope.attributes),
      droppedAttributesCount: count(scope.droppedAttributesCount),
    };
  }

  span(span: OtlpSpan): WireObject {
    return {
      traceId: this.id(span.traceId),
      spanId: this.id(span.spanId),
      traceState: text(span.traceState),
      parentSpanId: this.id(span.parentSpanId),
      flags: count(span.flags),
      name: text(span.name),
      kind: count(span.kind),
      startTimeUnixNano: this.time(span.startTimeUnixNano),
      endTimeUnixNano: this.time(span.endTimeUnixNano),
      attributes: this.attributes(span.attributes),
      droppedAttributesCount: count(span.droppedAttributesCount),
      events: list(span.events, (event) => this.spanEvent(event)),
      droppedEventsCount: count(span.droppedEventsCount),
      links: list(span.links, (link) => this.spanLink(link)),
      droppedLinksCount: count(span.droppedLinksCount),
      status: span.status === null ? undefined : { message: text(span.status.message), code: count(span.status.code) },
    };
  }

  logRecord(record: OtlpLogRecord): WireObject {
    return {
      timeUnixNano: this.time(record.timeUnixNano),
      observedTimeUnixNano: this.time(record.observedTimeUnixNano),
      severityNumber: count(record.severityNumber),
      severityText: text(record.severityText),
      body: record.body === null ? undefined : this.value(record.body),
      attributes: this.attributes(record.attributes),
      droppedAttributesCount: count(record.droppedAttributesCount),
      flags: count(record.flags),
      traceId: this.id(record.traceId),
      spanId: this.id(record.spanId),
      eventName: text(record.eventName),
    };
  }

  private spanEvent(event: OtlpSpanEvent): WireObject {
    return {
      timeUnixNano: this.time(event.timeUnixNano),
      name: text(event.name),
      attributes: this.attributes(event.attributes),
      droppedAttributesCount: count(event.droppedAttributesCount),
    };
  }

  private spanLink(link: OtlpSpanLink): WireObject {
    return {
      traceId: this.id(link.traceId),
      spanId: this.id(link.spanId),
      traceState: text(link.traceState),
      attributes: this.attributes(link.attributes),
      droppedAttributesCount: count(link.droppedAttributesCount),
      flags: count(link.flags),
    };
  }

  private attributes(attributes: readonly KeyValue[]): WireObject[] | undefined {
    return list(attributes, (entry) => this.keyValue(entry));
  }

  private keyValue({ key, value }: KeyValue): WireObject {
    return { key, value: value === null ? undefined : this.value(value) };
  }

  private value(value: AnyValue): WireObject {
    if (value === null) return {};
    if (typeof value === 'string') return { stringValue: value };
    if (typeof value === 'boolean') return { boolValue: value };
    if (typeof value === 'bigint') return { intValue: this.spelling.int64(value) };
    if (typeof value === 'number') return { doubleValue: this.spelling.double(value) };
    if (value instanceof Uint8Array) return { bytesValue: this.spelling.bytes(value) };
    if (isList(value)) return { arrayValue: { values: list(value, (item) => this.value(item)) } };
    return { kvlistValue: { values: list(value.entries, (entry) => this.keyValue(entry)) } };
  }

  private id(hex: string): unknown {
    return hex === '' ? undefined : this.spelling.id(hex);
  }

  private time(unixNano: bigint): unknown {
    return unixNano === 0n ? undefined : this.spelling.int64(unixNano);
  }
}

function isList(value: AnyValue): value is readonly AnyValue[] {
  return Array.isArray(value);
}

function text(value: string): string | undefined {
  return value === '' ? undefined : value;
}

function count(value: number): number | undefined {
  return value === 0 ? undefined : value;
}

function list<T, R>(items: readonly T[], convert: (item: T) => R): R[] | undefined {
  return items.length === 0 ? undefined : items.map(convert);
}
