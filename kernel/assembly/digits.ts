/** Eight bytes as 16 hexadecimal digits. */
@inline
export function hex8(to: usize, from: usize): void {
  v128.store(to, hexOf(v128.load64_zero(from)));
}

/** Sixteen bytes as 32 hexadecimal digits. */
export function hex16(to: usize, from: usize): void {
  hex8(to, from);
  hex8(to + 16, from + 8);
}

@inline
function hexOf(bytes: v128): v128 {
  const digits = i8x16(0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66);
  const high = i8x16.shr_u(bytes, 4);
  const low = v128.and(bytes, i8x16.splat(0x0f));
  const both = i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return i8x16.swizzle(digits, both);
}

/** A 64-bit number in decimal digits. */
export function decimal(to: usize, value: u64): usize {
  if (value < 10_000_000_000_000_000) return short(to, value);
  const low = value % 10_000_000_000_000_000;
  const end = short(to, value / 10_000_000_000_000_000);
  store<u64>(end, eightDigits(low / 100_000_000));
  store<u64>(end + 8, eightDigits(low % 100_000_000));
  return end + 16;
}

/** Any number, digit by digit. */
export function short(to: usize, value: u64): usize {
  let count: usize = 1;
  for (let rest = value; rest >= 10; rest /= 10) count++;
  for (let at = to + count - 1; at > to; at--) {
    store<u8>(at, <u8>(0x30 + (value % 10)));
    value /= 10;
  }
  store<u8>(to, <u8>(0x30 + value));
  return to + count;
}

/** The eight digits of a number below 1e8, side by side: halves, then pairs, then digits, each step in all parts at once. */
@inline
function eightDigits(value: u64): u64 {
  const fours = value / 10_000 + ((value % 10_000) << 32);
  const tops = ((fours * 10_486) >> 20) & 0x7f0000007f;
  const pairs = tops + ((fours - 100 * tops) << 16);
  const tens = ((pairs * 103) >> 10) & 0x000f000f000f000f;
  return (tens + ((pairs - 10 * tens) << 8)) | 0x3030303030303030;
}
