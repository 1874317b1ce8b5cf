/** Protobuf's wire types, as far as OTLP uses them (https://protobuf.dev/programming-guides/encoding). */
export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH = 2;
export const FIXED32 = 5;

/** A field's tag: its number and its wire type in one; `tagOf(9, LENGTH)` is 0x4a. */
export function tagOf(field: number, wireType: number): number {
  return (field << 3) | wireType;
}
