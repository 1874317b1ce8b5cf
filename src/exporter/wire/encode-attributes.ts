import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import type { WireWriter } from './wire-writer.js';

const KEY = tagOf(1, LENGTH);
const VALUE = tagOf(2, LENGTH);
const STRING_VALUE = tagOf(1, LENGTH);
const BOOL_VALUE = tagOf(2, VARINT);
const INT_VALUE = tagOf(3, VARINT);
const DOUBLE_VALUE = tagOf(4, FIXED64);
const ARRAY_VALUE = tagOf(5, LENGTH);
const ARRAY_ITEM = tagOf(1, LENGTH);
const MAX_INT64 = 2 ** 63;

/** Writes attributes as OTLP's KeyValue messages. @param tag of the field that repeats them. */
export function encodeAttributes(out: WireWriter, tag: number, attributes: Attributes): void {
  for (const key in attributes) encodeAttribute(out, tag, key, attributes[key]);
}

/** Writes one attribute. */
export function encodeAttribute(out: WireWriter, tag: number, key: string, value: AttributeValue | undefined): void {
  out.tag(tag);
  const start = out.open();
  out.tag(KEY);
  out.text(key);
  out.tag(VALUE);
  encodeValue(out, value);
  out.close(start);
}

/** Writes an AnyValue with its length; whole numbers are integers, as OpenTelemetry's own serialiser has it. */
export function encodeValue(out: WireWriter, value: AttributeValue | null | undefined): void {
  const start = out.open();
  if (typeof value === 'string') {
    out.tag(STRING_VALUE);
    out.text(value);
  } else if (typeof value === 'boolean') {
    out.tag(BOOL_VALUE);
    out.varint(value ? 1 : 0);
  } else if (typeof value === 'number') {
    encodeNumber(out, value);
  } else if (Array.isArray(value)) {
    out.tag(ARRAY_VALUE);
    const list = out.open();
    for (const item of value) {
      out.tag(ARRAY_ITEM);
      encodeValue(out, item);
    }
    out.close(list);
  }
  out.close(start);
}

function encodeNumber(out: WireWriter, value: number): void {
  if (Number.isInteger(value) && value >= -MAX_INT64 && value < MAX_INT64) {
    out.tag(INT_VALUE);
    out.int64(value);
  } else {
    out.tag(DOUBLE_VALUE);
    out.double(value);
  }
}
