import { beginCells } from './cells';
import { CELLS, CELLS_PER_SPAN, MAX_SPANS, OUT, OUT_END } from './memory-map';
import { varint } from './bytes';
import { readSpan, traceId } from './span-reader';
import { writeSpan } from './span-writer';
import { setTraceId } from './texts';

export { BODY, BODY_END, CELLS, CELLS_PER_SPAN, OUT, TEMPLATES, TEMPLATES_END } from './memory-map';
export { setEventTypes } from './templates';

/** A byte of a body becomes up to six of JSON, twice. */
const LINES_PER_BYTE: u32 = 12;
/** More than all fixed parts of a span's lines, and the bytes that are copied too many. */
const FIXED_BYTES: u32 = 4096;

/** What the latest run came to: where it stopped, where its lines end, where the trace id of its spans stands. */
export let stoppedAt: u32 = 0;
export let outEnd: u32 = 0;
export let traceIdAt: u32 = 0;

/**
 * Decodes consecutive spans of one trace: fields of a ScopeSpans message that stand from `at` to `end`, the first of them
 * a span. Returns how many; it stops before the first span that it does not know how to write, that is of another trace,
 * or that is not wholly there.
 * @param at from BODY on
 * @param end up to BODY_END
 * @param linesLength how many bytes of lines the page has
 */
export function run(at: u32, end: u32, linesLength: u32): u32 {
  const base = linesLength - OUT;
  let to: usize = OUT;
  let count: u32 = 0;
  traceIdAt = 0;
  while (count < MAX_SPANS && at < end && load<u8>(at) == 0x12) {
    const head = varint(load<u32>(at + 1));
    const start = at + 1 + (head & 3);
    const size = head >> 2;
    if (head == 0 || start + size > end) break;
    const layout = readSpan(start, start + size);
    if (layout == null || !isOfTrace()) break;
    if (OUT_END - <u32>to < size * LINES_PER_BYTE + layout.fixedBytes + FIXED_BYTES) break;
    beginCells(CELLS + 4 * CELLS_PER_SPAN * count);
    const next = writeSpan(to, layout, base);
    if (next == 0) break;
    to = next;
    count += 1;
    at = start + size;
  }
  stoppedAt = at;
  outEnd = <u32>to;
  return count;
}

/** Whether the span that was read is of the run's trace, which is that of its first one. */
@inline
function isOfTrace(): bool {
  if (traceIdAt != 0) return v128.all_true<u8>(i8x16.eq(v128.load(traceId), v128.load(traceIdAt)));
  traceIdAt = <u32>traceId;
  setTraceId(traceId);
  return true;
}
