/**
 * Where a plain text ends: before the first quote, backslash or control character, or byte beyond ASCII. A line break is
 * one of these, so that it ends within its line.
 */
@inline
export function endOfPlain(at: usize): usize {
  while (true) {
    const chunk = v128.load(at);
    // Bytes from 0x80 are negative as signed ones, so one comparison finds them and the control characters.
    const outside = i8x16.lt_s(chunk, i8x16.splat(0x20));
    const quotes = i8x16.eq(chunk, i8x16.splat(0x22));
    const backslashes = i8x16.eq(chunk, i8x16.splat(0x5c));
    const odd = i8x16.bitmask(v128.or(outside, v128.or(quotes, backslashes)));
    if (odd != 0) return at + ctz(odd);
    at += 16;
  }
}

/** The values of 16 hexadecimal digits, lowercase; bytes above 15 for others. */
@inline
export function nibbles(at: usize): v128 {
  const bytes = v128.load(at);
  const digits = i8x16.sub(bytes, i8x16.splat(0x30));
  const letters = i8x16.sub(bytes, i8x16.splat(0x61));
  const isDigit = i8x16.lt_u(digits, i8x16.splat(10));
  const isLetter = i8x16.lt_u(letters, i8x16.splat(6));
  const values = v128.bitselect(digits, i8x16.add(letters, i8x16.splat(10)), isDigit);
  return v128.or(values, v128.not(v128.or(isDigit, isLetter)));
}

@inline
export function areHex(values: v128): bool {
  return !v128.any_true(i8x16.gt_u(values, i8x16.splat(15)));
}

/** The eight bytes that 16 digits spell, the first one lowest. */
@inline
export function bytesOf(values: v128): u64 {
  const high = v128.and(i16x8.shl(values, 4), i16x8.splat(0xf0));
  const both = v128.or(high, i16x8.shr_u(values, 8));
  return <u64>i64x2.extract_lane(i8x16.narrow_i16x8_u(both, both), 0);
}
