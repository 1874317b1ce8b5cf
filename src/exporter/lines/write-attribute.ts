import { varintSize, type WireWriter } from '../wire/wire-writer.js';
import type { AttributeMapping } from './event-mappings.js';

const STRING_VALUE = 0x0a;
const INT_VALUE = 0x18;
const ZERO = 0x30;

/** Writes ASCII bytes as a text attribute: all lengths are known beforehand, so nothing is moved. */
export function writeTextAttribute(
  out: WireWriter,
  tag: number,
  mapping: AttributeMapping,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  const length = end - start;
  const { keyBytes } = mapping;
  // All three lengths take one byte for nearly every attribute: then it is written in one go.
  const byteCount = keyBytes.length + 3 + length;
  if (byteCount < 0x80) {
    out.reserve(byteCount + 2);
    const to = out.bytes;
    let at = out.length;
    to[at++] = tag;
    to[at++] = byteCount;
    for (let index = 0; index < keyBytes.length; index++) to[at++] = keyBytes[index] as number;
    to[at++] = length + 2;
    to[at++] = STRING_VALUE;
    to[at++] = length;
    for (let index = start; index < end; index++) to[at++] = bytes[index] as number;
    out.length = at;
    return;
  }
  writeHead(out, tag, mapping, 1 + varintSize(length) + length);
  out.bytes[out.length++] = STRING_VALUE;
  out.varint(length);
  out.copy(bytes, start, end);
}

/** Writes at most 15 digits as an integer attribute. */
export function writeIntegerAttribute(
  out: WireWriter,
  tag: number,
  mapping: AttributeMapping,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (bytes[at] as number) - ZERO;
  let byteCount = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) byteCount++;
  writeHead(out, tag, mapping, 1 + byteCount);
  out.bytes[out.length++] = INT_VALUE;
  for (; value > 0x7f; value = Math.floor(value / 0x80)) out.bytes[out.length++] = (value % 0x80) | 0x80;
  out.bytes[out.length++] = value;
}

/** A KeyValue up to its value, whose length is known; with room for a short value. */
function writeHead(out: WireWriter, tag: number, mapping: AttributeMapping, valueBytes: number): void {
  const { keyBytes } = mapping;
  out.tag(tag);
  out.varint(keyBytes.length + varintSize(valueBytes) + valueBytes);
  out.copy(keyBytes, 0, keyBytes.length);
  out.varint(valueBytes);
  out.reserve(SHORT_VALUE_BYTES);
}

const SHORT_VALUE_BYTES = 16;
