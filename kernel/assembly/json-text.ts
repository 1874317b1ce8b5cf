import { BACKSLASH, QUOTE } from './json-bytes';

/** UTF-8 as a JSON string with its quotes. Returns where it ends; 0 where the text is not UTF-8. */
export function jsonText(to: usize, from: usize, length: u32): usize {
  const end = from + length;
  store<u8>(to, QUOTE);
  to += 1;
  while (from < end) {
    const chunk = v128.load(from);
    v128.store(to, chunk);
    const left = <u32>min<usize>(end - from, 16);
    const odd = oddBytes(chunk) & ((1 << left) - 1);
    if (odd == 0) {
      from += left;
      to += left;
      continue;
    }
    from += ctz(odd);
    to += ctz(odd);
    const byte = load<u8>(from);
    if (byte >= 0x80) {
      const size = characterSize(from, end);
      if (size == 0) return 0;
      store<u32>(to, load<u32>(from));
      from += size;
      to += size;
    } else {
      to = escaped(to, byte);
      from += 1;
    }
  }
  store<u8>(to, QUOTE);
  return to + 1;
}

/** A bit for each byte that does not stand for itself: control characters, quotes, backslashes, parts of longer characters. */
@inline
function oddBytes(chunk: v128): i32 {
  // Bytes from 0x80 are negative as signed ones, so one comparison finds them and the control characters.
  const outside = i8x16.lt_s(chunk, i8x16.splat(0x20));
  const quotes = i8x16.eq(chunk, i8x16.splat(QUOTE));
  const backslashes = i8x16.eq(chunk, i8x16.splat(BACKSLASH));
  return i8x16.bitmask(v128.or(outside, v128.or(quotes, backslashes)));
}

function escaped(to: usize, byte: u8): usize {
  const letter = shortEscape(byte);
  store<u8>(to, BACKSLASH);
  if (letter != 0) {
    store<u8>(to + 1, letter);
    return to + 2;
  }
  store<u8>(to + 1, 0x75);
  store<u16>(to + 2, 0x3030);
  store<u8>(to + 4, 0x30 + (byte >> 4));
  store<u8>(to + 5, (byte & 15) < 10 ? 0x30 + (byte & 15) : 0x57 + (byte & 15));
  return to + 6;
}

function shortEscape(byte: u8): u8 {
  switch (byte) {
    case QUOTE:
    case BACKSLASH:
      return byte;
    case 0x08:
      return 0x62;
    case 0x09:
      return 0x74;
    case 0x0a:
      return 0x6e;
    case 0x0c:
      return 0x66;
    case 0x0d:
      return 0x72;
    default:
      return 0;
  }
}

/** How many bytes the character has that begins here with a byte from 0x80; 0 where it is none that UTF-8 allows. */
function characterSize(at: usize, end: usize): u32 {
  const first = load<u8>(at);
  const second = load<u8>(at + 1);
  if (first < 0xc2 || first > 0xf4) return 0;
  const size: u32 = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (at + size > end || !isContinuation(second)) return 0;
  // Not longer than need be, no surrogates, nothing beyond U+10FFFF.
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second >= 0xa0) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second >= 0x90) return 0;
  if (size > 2 && !isContinuation(load<u8>(at + 2))) return 0;
  if (size > 3 && !isContinuation(load<u8>(at + 3))) return 0;
  return size;
}

@inline
function isContinuation(byte: u8): bool {
  return (byte & 0xc0) == 0x80;
}
