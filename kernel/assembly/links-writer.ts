import { copy } from './bytes';
import * as cells from './cells';
import { hex16, hex8 } from './digits';
import * as span from './span-reader';
import * as texts from './texts';

/** Writes the links, of which there are some, and notes the one to a span of the same trace. */
export function writeLinks(to: usize): usize {
  const begin = to;
  for (let index: u32 = 0; index < span.linkCount; index++) {
    const traceId: usize = load<u32>(span.LINKS + 4 * index);
    const spanId = traceId + 18;
    to = copy(to, texts.linkTrace, texts.LINK_TRACE);
    hex16(to, traceId);
    to = copy(to + 32, texts.linkSpan, texts.LINK_SPAN);
    hex8(to, spanId);
    to = copy(to + 16, texts.linkEnd, texts.LINK_END);
    if (!v128.all_true<u8>(i8x16.eq(v128.load(traceId), v128.load(span.traceId)))) continue;
    if (cells.cell(cells.LINK) != 0 || cells.cell(cells.LINK + 1) != 0) cells.setCell(cells.IS_SPECIAL, 1);
    cells.setId(cells.LINK, spanId);
  }
  // Each was written behind a comma; the first one's is the bracket.
  store<u8>(begin, 0x5b);
  store<u8>(to, 0x5d);
  return to + 1;
}
