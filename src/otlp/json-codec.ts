import { reasonOf } from '../core/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../record/attributes.js';
import type { Signal } from '../record/record-batch.js';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  LogsRequest,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  OtlpSpanEvent,
  OtlpSpanLink,
  TracesRequest,
} from './export-request.js';
import { checkJsonFieldCount, checkValueLevel, type OtlpCodec, OtlpDecodeError } from './otlp-codec.js';
import { requestToWire, type WireSpelling } from './to-wire.js';

/**
 * OTLP's JSON encoding: protobuf's JSON mapping with ids in hexadecimal and enums as integers. Read generously
 * (64-bit numbers as strings or numbers, names in either case, unknown keys passed over); written on one line.
 */
export class JsonCodec implements OtlpCodec {
  readonly encoding = 'json';
  private readonly decoder = new TextDecoder();
  private readonly encoder = new TextEncoder();

  decode(signal: Signal, body: Uint8Array): ExportRequest {
    checkJsonFieldCount(body);
    const document = this.parse(signal, body);
    return signal === 'traces' ? tracesFromJson(document) : logsFromJson(document);
  }

  encode(request: ExportRequest): Uint8Array {
    return this.write(requestToWire(request, JSON_SPELLING));
  }

  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array {
    if (rejectedCount === 0 && message === '') return this.write({});
    const rejected = String(rejectedCount);
    return this.write({
      partialSuccess:
        signal === 'traces'
          ? { rejectedSpans: rejected, errorMessage: message }
          : { rejectedLogRecords: rejected, errorMessage: message },
    });
  }

  encodeStatus(code: number, message: string): Uint8Array {
    return this.write({ code, message });
  }

  private parse(signal: Signal, body: Uint8Array): JsonValue {
    try {
      return JSON.parse(quoteLongIntegers(this.decoder.decode(body)));
    } catch (cause) {
      // A SyntaxError, or a RangeError for nesting that exhausts the parser's stack.
      const reason = reasonOf(cause);
      throw new OtlpDecodeError(`The body is not an OTLP ${signal} request in JSON: ${reason}.`, { cause });
    }
  }

  private write(message: unknown): Uint8Array {
    return this.encoder.encode(JSON.stringify(message));
  }
}

const JSON_SPELLING: WireSpelling = {
  id: (hex) => hex,
  int64: (value) => value.toString(),
  // JSON has no spelling for these, and `JSON.stringify` drops the sign of -0.
  double: (value) =>
    Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? '-0' : String(value),
  bytes: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'),
};

const LONG_INTEGER_LIKELY = /[[:,\s]-?\d{16}/;
const STRING_OR_NUMBER = /"|-?\d[\d.eE+-]*/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/**
 * Puts quotes round every integer of 16 or more digits in a JSON text, so that `JSON.parse` does not round it: OTLP's
 * 64-bit numbers may come as JSON numbers, and times exceed 2^53. A reviver sees a number's text only from Node 21 on,
 * and a parser in JavaScript is several times slower than `JSON.parse`; this pass runs only where such a number seems
 * to be there, in time linear in the text.
 */
export function quoteLongIntegers(json: string): string {
  if (!LONG_INTEGER_LIKELY.test(json)) return json;
  let quoted = '';
  let copiedTo = 0;
  STRING_OR_NUMBER.lastIndex = 0;
  for (let match = STRING_OR_NUMBER.exec(json); match !== null; match = STRING_OR_NUMBER.exec(json)) {
    const token = match[0];
    if (token === '"') {
      STRING_OR_NUMBER.lastIndex = endOfString(json, match.index + 1);
    } else if (LONG_INTEGER.test(token)) {
      quoted += `${json.slice(copiedTo, match.index)}"${token}"`;
      copiedTo = match.index + token.length;
    }
  }
  return quoted + json.slice(copiedTo);
}

/** Index after the quote that closes the string; the text's length when none does. */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (quote - backslashes > start && json[quote - backslashes - 1] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return json.length;
}

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

const HEX = /^(?:[0-9a-f]{2})*$/i;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const INTEGER = /^-?\d{1,20}$/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const MAX_UINT32 = 2 ** 32 - 1;
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_INT64 = 2n ** 63n - 1n;

const snakeNames = new Map<string, string>();

/**
 * Reads the fields of one message in protobuf's JSON mapping: names in lowerCamelCase or as in the .proto file,
 * `null` is unset, unset is the default, numbers may be strings. A value of the wrong type is an OtlpDecodeError that
 * names its JSON path, for example `resourceSpans[0].scopeSpans[0].spans[2].kind`.
 */
export class JsonFields {
  /** @throws OtlpDecodeError when the document is not a JSON object. */
  static ofDocument(document: JsonValue): JsonFields {
    if (isJsonObject(document)) return new JsonFields(document, null, '');
    throw new OtlpDecodeError(`The body must be a JSON object, not ${kindOf(document)}.`);
  }

  private constructor(
    private readonly object: JsonObject,
    private readonly parent: JsonFields | null,
    private readonly step: string,
  ) {}

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  string(name: string): string {
    const value = this.get(name);
    if (value === undefined) return '';
    return typeof value === 'string' ? value : this.fail(name, 'a string', value);
  }

  strings(name: string): readonly string[] {
    const value = this.get(name);
    if (value === undefined) return [];
    if (!isList(value)) return this.fail(name, 'a list', value);
    return value.map((item, index) =>
      typeof item === 'string' ? item : this.fail(`${name}[${index}]`, 'a string', item),
    );
  }

  boolean(name: string): boolean {
    const value = this.get(name);
    if (value === undefined) return false;
    return typeof value === 'boolean' ? value : this.fail(name, 'true or false', value);
  }

  /** Bytes in hexadecimal, as OTLP spells ids; comes out in lowercase. */
  hex(name: string): string {
    const value = this.get(name);
    if (value === undefined) return '';
    if (typeof value === 'string' && HEX.test(value)) return value.toLowerCase();
    return this.fail(name, 'an id in hexadecimal', value);
  }

  base64(name: string): Uint8Array {
    const value = this.get(name);
    if (value === undefined) return new Uint8Array();
    if (typeof value === 'string' && BASE64.test(value)) return new Uint8Array(Buffer.from(value, 'base64'));
    return this.fail(name, 'bytes in base64', value);
  }

  uint32(name: string): number {
    return Number(this.integer(name, 0n, BigInt(MAX_UINT32), 'an integer from 0 to 2^32-1'));
  }

  /** A 32-bit integer; enums are these. */
  int32(name: string): number {
    return Number(this.integer(name, BigInt(-MAX_INT32 - 1), BigInt(MAX_INT32), 'a 32-bit integer'));
  }

  uint64(name: string): bigint {
    return this.integer(name, 0n, MAX_UINT64, 'an integer from 0 to 2^64-1');
  }

  int64(name: string): bigint {
    return this.integer(name, -MAX_INT64 - 1n, MAX_INT64, 'a 64-bit integer');
  }

  double(name: string): number {
    const value = this.get(name);
    if (value === undefined) return 0;
    if (typeof value === 'number') return value;
    if (typeof value === 'string') {
      if (value === 'NaN' || value === 'Infinity' || value === '-Infinity' || NUMBER.test(value)) return Number(value);
    }
    return this.fail(name, 'a number, "NaN", "Infinity" or "-Infinity"', value);
  }

  message(name: string): JsonFields | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    return isJsonObject(value) ? new JsonFields(value, this, `.${name}`) : this.fail(name, 'an object', value);
  }

  messages(name: string): readonly JsonFields[] {
    const value = this.get(name);
    if (value === undefined) return [];
    if (!isList(value)) return this.fail(name, 'a list', value);
    return value.map((item, index) => {
      const step = `${name}[${index}]`;
      return isJsonObject(item) ? new JsonFields(item, this, `.${step}`) : this.fail(step, 'an object', item);
    });
  }

  /** @throws OtlpDecodeError always, for a fault of this message as a whole. */
  reject(expected: string): never {
    throw new OtlpDecodeError(`${this.path() || 'The body'} must be ${expected}.`);
  }

  private integer(name: string, min: bigint, max: bigint, expected: string): bigint {
    const value = this.get(name);
    if (value === undefined) return 0n;
    // Beyond 2^53 a number was rounded by the parser; long integers reach this as strings.
    const isInteger =
      typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && INTEGER.test(value);
    if (!isInteger) return this.fail(name, expected, value);
    const integer = BigInt(value as string | number);
    return integer >= min && integer <= max ? integer : this.fail(name, expected, value);
  }

  private get(name: string): JsonValue | undefined {
    return this.object[name] ?? this.object[snakeName(name)] ?? undefined;
  }

  private fail(step: string, expected: string, value: JsonValue): never {
    throw new OtlpDecodeError(
      `${this.path()}${this.parent === null ? '' : '.'}${step} must be ${expected}, not ${kindOf(value)}.`,
    );
  }

  private path(): string {
    if (this.parent === null) return '';
    return (this.parent.path() + this.step).replace(/^\./, '');
  }
}

function snakeName(name: string): string {
  let snake = snakeNames.get(name);
  if (snake === undefined) {
    snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakeNames.set(name, snake);
  }
  return snake;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (isList(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  const text = JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
