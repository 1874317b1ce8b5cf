/**
 * Copies 16 bytes at a time, so up to 15 bytes too many: what is behind `to + length` is written later or belongs to
 * nobody. A call of memory.copy costs more than the few steps that most pieces take.
 */
@inline
export function copy(to: usize, from: usize, length: u32): usize {
  for (let done: u32 = 0; done < length; done += 16) v128.store(to + done, v128.load(from + done));
  return to + length;
}

/** Whether two stretches are the same. Reads up to 15 bytes beyond them. */
@inline
export function isSame(a: usize, b: usize, length: u32): bool {
  let done: u32 = 0;
  for (; done + 16 <= length; done += 16) {
    if (i8x16.bitmask(i8x16.eq(v128.load(a + done), v128.load(b + done))) != 0xffff) return false;
  }
  const rest = (1 << (length - done)) - 1;
  return (i8x16.bitmask(i8x16.eq(v128.load(a + done), v128.load(b + done))) & rest) == rest;
}

/**
 * A protobuf varint of at most three bytes, of the four bytes that stand there: its value times 4, plus how many bytes
 * it has. 0 for a longer one.
 */
@inline
export function varint(word: u32): u32 {
  if ((word & 0x80) == 0) return ((word & 0x7f) << 2) | 1;
  const low = (word & 0x7f) | ((word >> 1) & 0x3f80);
  if ((word & 0x8000) == 0) return (low << 2) | 2;
  if ((word & 0x800000) == 0) return ((low | ((word >> 2) & 0x1fc000)) << 2) | 3;
  return 0;
}
