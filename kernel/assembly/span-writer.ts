import { closed, writeEndAttributes, writeStartAttributes } from './attributes-writer';
import { copy } from './bytes';
import * as cells from './cells';
import { decimal, hex8 } from './digits';
import { jsonText } from './json-text';
import { writeLinks } from './links-writer';
import * as span from './span-reader';
import { writeStatus } from './status-writer';
import { Layout } from './templates';
import * as texts from './texts';

/**
 * Writes both lines of the span that was read to `to`, and its cells. Returns where the lines end; 0 where JavaScript has
 * to write it. There is room for it.
 * @param base what to add to an address to have a position in the page's lines
 */
export function writeSpan(to: usize, layout: Layout, base: u32): usize {
  cells.setCell(cells.START_LINE, <u32>to + base);
  cells.setCell(cells.TYPE, span.typeIndex);
  cells.setCell(cells.STATUS_CODE, span.status);
  const isOther = layout.decider >= 0 && isDecided(layout);
  const tail = isOther ? layout.otherTail : layout.tail;
  const severityLength = (isOther ? layout.otherTailLength : layout.tailLength) - layout.typeLength;

  to = copy(to, texts.startHead, texts.START_HEAD);
  const head = to;
  to = writeHead(to, base);
  if (to == 0) return 0;
  const headEnd = to;
  to = copy(to, texts.noLinks, texts.NO_LINKS);
  to = copy(to, texts.startTime, texts.START_TIME);
  const time = to;
  to = writeTime(to, cells.START_TIME, span.startTime);
  const timeEnd = to;
  to = copy(to, tail, severityLength + layout.typeLength);
  const attributes = to;
  to = writeStartAttributes(to, layout);
  if (to == 0) return 0;
  to = closed(attributes, to);

  // The end begins as the start does; what both have is copied.
  cells.setCell(cells.END_LINE, <u32>to + base);
  to = copy(to, texts.endHead, texts.END_HEAD);
  to = copy(to, head, <u32>(headEnd - head));
  to = span.linkCount == 0 ? copy(to, texts.noLinks, texts.NO_LINKS) : writeLinks(to);
  to = copy(to, texts.startTime, texts.START_TIME);
  to = copy(to, time, <u32>(timeEnd - time));
  to = copy(to, texts.endTime, texts.END_TIME);
  to = writeTime(to, cells.END_TIME, span.endTime);
  to = copy(to, tail, severityLength);
  to = writeStatus(to);
  if (to == 0) return 0;
  to = copy(to, tail + severityLength, layout.typeLength);
  const endAttributes = to;
  to = writeEndAttributes(to, layout, base);
  if (to == 0) return 0;
  // Now that nothing of the start is copied any more: its first comma is to be a brace.
  store<u8>(attributes, 0x7b);
  to = closed(endAttributes, to);
  store<u8>(endAttributes, 0x7b);
  cells.setCell(cells.LINE_END, <u32>to + base);
  return to;
}

/** From the span's id to `"links":`. */
@inline
function writeHead(to: usize, base: u32): usize {
  cells.setId(cells.ID, span.spanId);
  hex8(to, span.spanId);
  to = copy(to + 16, texts.nameKey, texts.NAME_KEY);
  cells.setCell(cells.NAME_START, <u32>to + base);
  to = jsonText(to, span.name, span.nameLength);
  if (to == 0) return 0;
  cells.setCell(cells.NAME_END, <u32>to + base);
  if (span.parentSpanId == 0) return copy(to, texts.noParent, texts.NO_PARENT);
  cells.setId(cells.PARENT, span.parentSpanId);
  to = copy(to, texts.parent, texts.PARENT);
  hex8(to, span.parentSpanId);
  return copy(to + 16, texts.links, texts.LINKS);
}

@inline
function writeTime(to: usize, cell: u32, from: usize): usize {
  const time = load<u64>(from);
  cells.setTime(cell, time);
  return decimal(to, time);
}

/** Whether the attribute that decides the severity has the other severity's value. */
function isDecided(layout: Layout): bool {
  return span.isText(layout.decider, layout.deciderText, layout.deciderLength);
}
