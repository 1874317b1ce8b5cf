import type { Attributes, AttributeValue, HrTime } from '@opentelemetry/api';
import { FIXED32, FIXED64, LENGTH, VARINT } from '../../otlp/wire-type.js';

/** One field of a message: its number, and its value as its wire type has it. */
export interface WireField {
  readonly number: number;
  /** Of VARINT and FIXED32 fields, and 64 bits otherwise. */
  readonly value: bigint;
  /** Of LENGTH fields. */
  readonly content: Buffer;
}

/** The fields of a message that `WireWriter` wrote; it reads no others, so it checks nothing. */
export function* fieldsOf(message: Buffer): Generator<WireField> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const start = at;
    switch (tag & 7) {
      case VARINT:
        yield { number, value: varint(), content: EMPTY };
        break;
      case FIXED64:
        at += 8;
        yield { number, value: message.readBigUInt64LE(start), content: message.subarray(start, at) };
        break;
      case FIXED32:
        at += 4;
        yield { number, value: BigInt(message.readUInt32LE(start)), content: EMPTY };
        break;
      case LENGTH: {
        const length = Number(varint());
        at += length;
        yield { number, value: 0n, content: message.subarray(at - length, at) };
        break;
      }
      default:
        throw new Error(`no field of an exported item has the wire type ${tag & 7}`);
    }
  }
}

const EMPTY = Buffer.alloc(0);

/** Adds a KeyValue message to attributes. */
export function addAttribute(into: Attributes, keyValue: Buffer): void {
  let key = '';
  let value: AttributeValue | undefined;
  for (const field of fieldsOf(keyValue)) {
    if (field.number === 1) key = field.content.toString('utf8');
    else value = anyValueOf(field.content);
  }
  // Not by assignment: `__proto__` is a key like any other here.
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The value of an AnyValue message; numbers beyond 2^53 lose digits, as they had when they were written. */
export function anyValueOf(anyValue: Buffer): AttributeValue | undefined {
  for (const field of fieldsOf(anyValue)) {
    if (field.number === 1) return field.content.toString('utf8');
    if (field.number === 2) return field.value !== 0n;
    if (field.number === 3) return Number(BigInt.asIntN(64, field.value));
    if (field.number === 4) return field.content.readDoubleLE(0);
    return [...fieldsOf(field.content)].map(({ content }) => anyValueOf(content)) as string[];
  }
  return undefined;
}

/** Seconds and nanoseconds of a fixed64. */
export function timeOf(nanos: bigint): HrTime {
  return [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)];
}
