import { copy } from '../bytes';

// Pieces of protobuf. Each function returns where the next one goes.

/** How many bytes a length takes. */
@inline
export function varintSize(value: u32): u32 {
  if (value < 0x80) return 1;
  return value < 0x4000 ? 2 : 3;
}

/** A number. */
@inline
export function varint(to: usize, value: u64): usize {
  while (value > 0x7f) {
    store<u8>(to++, <u8>value | 0x80);
    value >>= 7;
  }
  store<u8>(to, <u8>value);
  return to + 1;
}

/** A tag of one byte, a length, and so many bytes. */
@inline
export function bytesField(to: usize, tag: u8, from: usize, length: u32): usize {
  store<u8>(to, tag);
  return copy(varint(to + 1, length), from, length);
}

const ATTRIBUTES: u8 = 0x4a;
const STRING_VALUE: u8 = 0x0a;
const BOOL_VALUE: u8 = 0x10;
const INT_VALUE: u8 = 0x18;

/** A span's attribute that is a text. `key` is a KeyValue up to the length of its value. */
@inline
export function textAttribute(to: usize, key: usize, keyLength: u32, from: usize, length: u32): usize {
  return keyedText(to, ATTRIBUTES, key, keyLength, from, length);
}

/** A KeyValue with a text, behind a tag. */
@inline
export function keyedText(to: usize, tag: u8, key: usize, keyLength: u32, from: usize, length: u32): usize {
  const valueLength = 1 + varintSize(length) + length;
  return bytesField(head(to, tag, key, keyLength, valueLength), STRING_VALUE, from, length);
}

/** How many bytes `keyedText` takes. */
export function keyedTextSize(keyLength: u32, length: u32): u32 {
  const valueLength = 1 + varintSize(length) + length;
  const size = keyLength + varintSize(valueLength) + valueLength;
  return 1 + varintSize(size) + size;
}

/** One that is a whole number. */
export function numberAttribute(to: usize, key: usize, keyLength: u32, value: u64): usize {
  let size: u32 = 1;
  for (let rest = value; rest > 0x7f; rest >>= 7) size++;
  to = head(to, ATTRIBUTES, key, keyLength, 1 + size);
  store<u8>(to, INT_VALUE);
  return varint(to + 1, value);
}

/** One that is true or false. */
export function boolAttribute(to: usize, key: usize, keyLength: u32, value: bool): usize {
  to = head(to, ATTRIBUTES, key, keyLength, 2);
  store<u8>(to, BOOL_VALUE);
  store<u8>(to + 1, value ? 1 : 0);
  return to + 2;
}

@inline
function head(to: usize, tag: u8, key: usize, keyLength: u32, valueLength: u32): usize {
  store<u8>(to, tag);
  to = varint(to + 1, keyLength + varintSize(valueLength) + valueLength);
  return varint(copy(to, key, keyLength), valueLength);
}
