import { isDeepStrictEqual } from 'node:util';
import { PublicAttributeSchema } from '../../src/otlp/attribute-schema.js';
import { EngineRecognition, namedItem, namesOf } from '../../src/otlp/engine-recognition.js';
import type { AnyValue, ExportRequest, KeyValue, OtlpLogRecord, OtlpSpan } from '../../src/otlp/export-request.js';
import { hasIds, hasOddId, ItemRecords, isId } from '../../src/otlp/item-records.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { OtlpDecodeError } from '../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { PublicSchema } from '../../src/otlp/public-schema.js';
import type { DecodedRequest } from '../../src/otlp/wire/wire-decoder.js';
import type { JsonObject, JsonValue } from '../../src/record/attributes.js';
import type { Delivery, Signal } from '../../src/record/record-batch.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';
import { decodedBy } from '../fuzz/decoded.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const recognition = new EngineRecognition();
const plainRecords = new ItemRecords(new PublicAttributeSchema(PublicSchema.load()));
const MAX_TIME = 2n ** 63n - 1n;
/** Documentation spells what they say otherwise, and the decoder puts it into other places. */
const RESPELLED = new Set(['phase', 'last_phase', 'test_outcome', 'node_test_detail']);
/** The name of an enum's value, which OTLP may bring as a number or in documentation's spelling. */
const ENUM_NAME = /^[A-Z]+(_[A-Z]+)+$/;

type Item = OtlpSpan | OtlpLogRecord;

/**
 * What is wrong with how a body is decoded, held to what protobufjs reads of it: it has to be refused if protobufjs cannot read it; to mean
 * what it means once protobufjs has framed it anew; and its records have to say what each span and log record says. What the
 * engine's own rules make of that (event types, severities, what a start has) is held to real runs instead.
 * @param decode decodes bodies of this signal in protobuf
 */
export function misreading(
  signal: Signal,
  body: Uint8Array,
  decode: (body: Uint8Array) => DecodedRequest,
): string | undefined {
  const decoded = decodedBy(() => decode(body));
  const request = readable(signal, body);
  if (request === undefined) return decoded.isRefused ? undefined : `takes what protobufjs refuses: ${decoded.text}`;
  if (decoded.isRefused) return 'refuses what protobufjs takes';
  const anew = decodedBy(() => decode(codecs.protobuf.encode(request)));
  if (anew.text !== decoded.text) return difference('framed anew it is', decoded.text, anew.text);
  const { delivery, rejectedCount } = decode(body);
  const problem = misreadItems(request, delivery, rejectedCount);
  delivery.release?.();
  return problem;
}

/** A request as protobufjs reads it; `undefined` where it cannot. */
export function readable(signal: Signal, body: Uint8Array): ExportRequest | undefined {
  try {
    return codecs.protobuf.decode(signal, body);
  } catch (error) {
    if (error instanceof OtlpDecodeError) return undefined;
    throw error;
  }
}

/** Both, from a little before where they part. */
export function difference(what: string, found: string, expected: string): string {
  let at = 0;
  while (at < found.length && found[at] === expected[at]) at++;
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 120), at + 120));
  return `${what}\n${around(expected)}\nand here ${around(found)}`;
}

function misreadItems(request: ExportRequest, delivery: Delivery, rejectedCount: number): string | undefined {
  const items = [...itemsOf(request)];
  const unlike = unlikePlainCode(items, delivery);
  if (unlike !== undefined) return unlike;
  // What another bridge says of a record may replace it.
  if (items.some(({ item }) => item.attributes.some(({ key }) => key.startsWith('run_bridge.')))) return undefined;
  const records = delivery.batches.flatMap((batch) => batch.records);
  const passed: Item[] = [];
  let expectedRejections = 0;
  let at = 0;
  for (const { isEngine, item } of items) {
    const isLog = 'body' in item;
    if (hasOddId(item)) expectedRejections++;
    else if (isLog ? !isEngine || !isId(item.traceId, 16) : !isEngine && hasIds(item)) passed.push(item);
    else if (!(isLog || hasIds(item)) || timesOf(item).some((time) => time > MAX_TIME)) expectedRejections++;
    else {
      const problem = isLog ? misreadLog(item, records[at]) : misreadSpan(item, records[at], records[at + 1]);
      if (problem !== undefined) return `${problem}\nof ${text(item)} it makes ${lineOf(records[at])}`;
      at += isLog ? 1 : 2;
    }
  }
  if (at < records.length) return `has a record that nobody sent: ${lineOf(records[at])}`;
  if (rejectedCount !== expectedRejections) return `rejects ${rejectedCount}, not ${expectedRejections}`;
  const found = delivery.passthrough.flatMap(({ signal, body }) =>
    [...itemsOf(codecs.json.decode(signal, Buffer.from(body)))].map(({ item }) => item),
  );
  return isDeepStrictEqual(found, passed) ? undefined : difference('passes on', text(found), text(passed));
}

/** What the fast way makes of the engine's items is what plain code makes of them. */
function unlikePlainCode(
  items: readonly { readonly isEngine: boolean; readonly item: Item }[],
  { batches }: Delivery,
): string | undefined {
  const expected = items.flatMap(({ isEngine, item }) => {
    if (!isEngine || hasOddId(item)) return [];
    const made = 'body' in item ? plainRecords.ofLog(item) : plainRecords.ofSpan(item);
    return typeof made === 'string' ? [] : made;
  });
  const found = batches.flatMap(({ records }) => records.map(formatRecordLine)).join('\n');
  const lines = expected.map(formatRecordLine).join('\n');
  return found === lines ? undefined : difference('has lines other than plain code makes', found, lines);
}

function* itemsOf(request: ExportRequest): Generator<{ isEngine: boolean; item: Item }> {
  for (const { resource, scopes } of request.resources) {
    for (const { scope, records } of scopes) {
      const origin = recognition.originOf(resource.attributes, namesOf(resource.attributes, scope.name));
      for (const item of records) {
        yield { isEngine: recognition.isOfEngine(origin, request.signal, namedItem(item)), item };
      }
    }
  }
}

function misreadSpan(
  span: OtlpSpan,
  start: TelemetryRecord | undefined,
  end: TelemetryRecord | undefined,
): string | undefined {
  if (start?.recordType !== 'SpanStart' || end?.recordType !== 'SpanEnd') return 'is no start and end';
  const links = span.links.filter(hasIds).map(({ traceId, spanId }) => [traceId, spanId]);
  const status = span.status ?? { code: 0, message: '' };
  const expected = {
    traceId: span.traceId,
    spanId: span.spanId,
    parent: isId(span.parentSpanId, 8) ? span.parentSpanId : null,
    name: span.name.startsWith('Node(') ? end.spanName : span.name,
    times: [span.startTimeUnixNano, span.endTimeUnixNano],
    links: links.length === 0 ? undefined : links,
    status: status.code === 0 && status.message === '' ? null : { code: status.code, message: status.message || null },
    events: span.events.length === 0 ? undefined : span.events.map(({ name }) => name),
  };
  const events = end.unknownFields?.events as readonly { readonly name: string }[] | undefined;
  const found = {
    traceId: end.traceId,
    spanId: end.spanId,
    parent: end.parentSpanId,
    name: end.spanName,
    times: [end.startTimeUnixNano, end.endTimeUnixNano],
    links: end.links?.map(({ traceId, spanId }) => [traceId, spanId]),
    status: end.status,
    events: events?.map(({ name }) => name),
  };
  if (!isDeepStrictEqual(found, expected)) return difference('a span', text(found), text(expected));
  return misreadAttributes(span.attributes, end.attributes.value);
}

function misreadLog(log: OtlpLogRecord, record: TelemetryRecord | undefined): string | undefined {
  if (record?.recordType !== 'LogRecord') return 'is no log record';
  const expected = {
    traceId: log.traceId,
    spanId: isId(log.spanId, 8) ? log.spanId : null,
    time: timesOf(log)[0],
    severity: [log.severityNumber || record.severityNumber, log.severityText || record.severityText],
    body: typeof log.body === 'string' ? log.body : log.body === null ? '' : record.body,
    eventType: log.eventName || record.eventType,
  };
  const { traceId, spanId, timeUnixNano: time, severityNumber, severityText, body, eventType } = record;
  const found = { traceId, spanId, time, severity: [severityNumber, severityText], body, eventType };
  if (!isDeepStrictEqual(found, expected)) return difference('a log record', text(found), text(expected));
  return misreadAttributes(log.attributes, record.attributes.value);
}

/** Of a key that comes twice the last value counts. */
function misreadAttributes(sent: readonly KeyValue[], found: JsonObject): string | undefined {
  const expected = new Map(sent.map(({ key, value }) => [key, value]));
  const isCompared = (key: string) => !RESPELLED.has(key);
  const keys = [...expected.keys()].filter(isCompared).sort();
  const foundKeys = Object.keys(found).filter(isCompared).sort();
  if (!isDeepStrictEqual(foundKeys, keys)) return `has the attributes ${foundKeys}, not ${keys}`;
  const wrong = keys.find((key) => !says(found[key], expected.get(key) ?? null));
  return wrong === undefined ? undefined : `says otherwise what ${JSON.stringify(wrong)} is`;
}

/** Whether a record's value says what the request's does; how numbers and nested values are spelled, the schema says. */
function says(found: JsonValue | undefined, sent: AnyValue): boolean {
  if (typeof found === 'string' && ENUM_NAME.test(found) && typeof sent !== 'object') return true;
  if (typeof sent === 'bigint') return String(found) === String(sent) || found === Number(sent);
  if (typeof sent !== 'string') return isDeepStrictEqual(found, plain(sent));
  if (found === sent) return true;
  try {
    return isDeepStrictEqual(found, JSON.parse(sent));
  } catch {
    return false;
  }
}

function plain(value: AnyValue): JsonValue {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null;
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if ('entries' in value && !Array.isArray(value)) {
    return Object.fromEntries((value as { entries: readonly KeyValue[] }).entries.map((e) => [e.key, plain(e.value)]));
  }
  return (value as readonly AnyValue[]).map(plain);
}

function timesOf(item: Item): readonly bigint[] {
  if (!('body' in item)) return [item.startTimeUnixNano, item.endTimeUnixNano];
  return [item.timeUnixNano === 0n ? item.observedTimeUnixNano : item.timeUnixNano];
}

function lineOf(record: TelemetryRecord | undefined): string {
  return record === undefined ? 'nothing' : formatRecordLine(record);
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}` : part));
}
