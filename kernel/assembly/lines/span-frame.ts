import { END_TIME, NAME_END, NAME_START, PARENT, SPAN, START_TIME } from './cells';
import { bytesOf, nibbles } from './plain-text';
import { bytesField } from './wire';

// The parts of a span that are neither attributes nor its failure, of a held line and its cells. Each function returns where
// the next part goes.

const TRACE_ID_AT: usize = '{"record_type":"SpanEnd","trace_id":"'.length;
const LINK_BYTES: u32 = 37;

/** One of a line's numbers. */
@inline
export function cellOf(cells: u32, which: u32): u32 {
  return load<u32>(cells + 4 * which);
}

/** Ids, name, kind and times. */
@inline
export function writeHead(to: usize, line: usize, cells: u32, kind: u32): usize {
  store<u16>(to, 0x100a);
  store<u64>(to + 2, bytesOf(nibbles(line + TRACE_ID_AT)));
  store<u64>(to + 10, bytesOf(nibbles(line + TRACE_ID_AT + 16)));
  to = writeId(to + 18, 0x0812, cells + 4 * SPAN);
  if (cellOf(cells, PARENT) != 0 || cellOf(cells, PARENT + 1) != 0) to = writeId(to, 0x0822, cells + 4 * PARENT);
  const name = cellOf(cells, NAME_START);
  to = bytesField(to, 0x2a, line + name, cellOf(cells, NAME_END) - name);
  store<u16>(to, <u16>(0x30 | (kind << 8)));
  store<u8>(to + 2, 0x39);
  store<u64>(to + 3, timeOf(cells + 4 * START_TIME));
  store<u8>(to + 11, 0x41);
  store<u64>(to + 12, timeOf(cells + 4 * END_TIME));
  return to + 20;
}

@inline
function writeId(to: usize, tagAndLength: u16, cell: u32): usize {
  store<u16>(to, tagAndLength);
  store<u32>(to + 2, bswap<u32>(load<u32>(cell)));
  store<u32>(to + 6, bswap<u32>(load<u32>(cell + 4)));
  return to + 10;
}

/** The time of which seconds and nanoseconds are in cells. */
@inline
export function timeOf(cell: u32): u64 {
  return <u64>load<u32>(cell) * 1_000_000_000 + load<u32>(cell + 4);
}

/** A link, of the two cells that say where its ids stand in the line. */
export function writeLink(to: usize, line: usize, cell: u32): usize {
  const trace = line + load<u32>(cell);
  store<u16>(to, <u16>(0x6a | ((LINK_BYTES - 2) << 8)));
  store<u16>(to + 2, 0x100a);
  store<u64>(to + 4, bytesOf(nibbles(trace)));
  store<u64>(to + 12, bytesOf(nibbles(trace + 16)));
  store<u16>(to + 20, 0x0812);
  store<u64>(to + 22, bytesOf(nibbles(line + load<u32>(cell + 4))));
  store<u16>(to + 30, 0x0028);
  store<u8>(to + 32, 0x35);
  store<u32>(to + 33, 0x0101);
  return to + 37;
}
