import type { JsonValue } from '../record/json.js';
import type { AnyValue, KeyValue } from './any-value.js';
import type {
  LogsRequest,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  OtlpSpanEvent,
  OtlpSpanLink,
  TracesRequest,
} from './export-request.js';
import { JsonFields } from './json-fields.js';
import { checkValueLevel } from './value-depth.js';

/** Reads a parsed JSON document as POST /v1/traces. @throws OtlpDecodeError naming the path of what is wrong. */
export function tracesFromJson(document: JsonValue): TracesRequest {
  const resources = JsonFields.ofDocument(document)
    .messages('resourceSpans')
    .map((group) => ({
      resource: resourceFromJson(group.message('resource')),
      schemaUrl: group.string('schemaUrl'),
      scopes: group.messages('scopeSpans').map((scopeGroup) => ({
        scope: scopeFromJson(scopeGroup.message('scope')),
        schemaUrl: scopeGroup.string('schemaUrl'),
        records: scopeGroup.messages('spans').map(spanFromJson),
      })),
    }));
  return { signal: 'traces', resources };
}

/** Reads a parsed JSON document as POST /v1/logs. @throws OtlpDecodeError naming the path of what is wrong. */
export function logsFromJson(document: JsonValue): LogsRequest {
  const resources = JsonFields.ofDocument(document)
    .messages('resourceLogs')
    .map((group) => ({
      resource: resourceFromJson(group.message('resource')),
      schemaUrl: group.string('schemaUrl'),
      scopes: group.messages('scopeLogs').map((scopeGroup) => ({
        scope: scopeFromJson(scopeGroup.message('scope')),
        schemaUrl: scopeGroup.string('schemaUrl'),
        records: scopeGroup.messages('logRecords').map(logRecordFromJson),
      })),
    }));
  return { signal: 'logs', resources };
}

function resourceFromJson(resource: JsonFields | undefined): OtlpResource {
  if (resource === undefined) return { attributes: [], droppedAttributesCount: 0 };
  const entityRefs = resource.messages('entityRefs').map((ref) => ({
    schemaUrl: ref.string('schemaUrl'),
    type: ref.string('type'),
    idKeys: ref.strings('idKeys'),
    descriptionKeys: ref.strings('descriptionKeys'),
  }));
  return { ...attributesOf(resource), ...(entityRefs.length === 0 ? {} : { entityRefs }) };
}

function scopeFromJson(scope: JsonFields | undefined): OtlpScope {
  if (scope === undefined) return { name: '', version: '', attributes: [], droppedAttributesCount: 0 };
  return { name: scope.string('name'), version: scope.string('version'), ...attributesOf(scope) };
}

function spanFromJson(span: JsonFields): OtlpSpan {
  const status = span.message('status');
  return {
    traceId: span.hex('traceId'),
    spanId: span.hex('spanId'),
    traceState: span.string('traceState'),
    parentSpanId: span.hex('parentSpanId'),
    flags: span.uint32('flags'),
    name: span.string('name'),
    kind: span.int32('kind'),
    startTimeUnixNano: span.uint64('startTimeUnixNano'),
    endTimeUnixNano: span.uint64('endTimeUnixNano'),
    ...attributesOf(span),
    events: span.messages('events').map(spanEventFromJson),
    droppedEventsCount: span.uint32('droppedEventsCount'),
    links: span.messages('links').map(spanLinkFromJson),
    droppedLinksCount: span.uint32('droppedLinksCount'),
    status: status === undefined ? null : { code: status.int32('code'), message: status.string('message') },
  };
}

function spanEventFromJson(event: JsonFields): OtlpSpanEvent {
  return { timeUnixNano: event.uint64('timeUnixNano'), name: event.string('name'), ...attributesOf(event) };
}

function spanLinkFromJson(link: JsonFields): OtlpSpanLink {
  return {
    traceId: link.hex('traceId'),
    spanId: link.hex('spanId'),
    traceState: link.string('traceState'),
    ...attributesOf(link),
    flags: link.uint32('flags'),
  };
}

function logRecordFromJson(record: JsonFields): OtlpLogRecord {
  return {
    timeUnixNano: record.uint64('timeUnixNano'),
    observedTimeUnixNano: record.uint64('observedTimeUnixNano'),
    severityNumber: record.int32('severityNumber'),
    severityText: record.string('severityText'),
    body: valueFromJson(record.message('body'), 1),
    ...attributesOf(record),
    flags: record.uint32('flags'),
    traceId: record.hex('traceId'),
    spanId: record.hex('spanId'),
    eventName: record.string('eventName'),
  };
}

function attributesOf(owner: JsonFields): { attributes: KeyValue[]; droppedAttributesCount: number } {
  return {
    attributes: owner.messages('attributes').map((entry) => keyValueFromJson(entry, 1)),
    droppedAttributesCount: owner.uint32('droppedAttributesCount'),
  };
}

function keyValueFromJson(entry: JsonFields, level: number): KeyValue {
  return { key: entry.string('key'), value: valueFromJson(entry.message('value'), level) };
}

const READ_VALUE: Readonly<Record<string, (value: JsonFields, level: number) => AnyValue>> = {
  stringValue: (value) => value.string('stringValue'),
  boolValue: (value) => value.boolean('boolValue'),
  intValue: (value) => value.int64('intValue'),
  doubleValue: (value) => value.double('doubleValue'),
  arrayValue: (value, level) =>
    value
      .message('arrayValue')
      ?.messages('values')
      .map((item) => valueFromJson(item, level + 1)) ?? [],
  kvlistValue: (value, level) => ({
    entries:
      value
        .message('kvlistValue')
        ?.messages('values')
        .map((entry) => keyValueFromJson(entry, level + 1)) ?? [],
  }),
  bytesValue: (value) => value.base64('bytesValue'),
};
const VALUE_KINDS = Object.entries(READ_VALUE);

function valueFromJson(value: JsonFields | undefined, level: number): AnyValue {
  checkValueLevel(level);
  if (value === undefined) return null;
  let result: AnyValue = null;
  let isSet = false;
  for (const [name, read] of VALUE_KINDS) {
    if (!value.has(name)) continue;
    if (isSet) value.reject('one value: it has several');
    result = read(value, level);
    isSet = true;
  }
  return result;
}
