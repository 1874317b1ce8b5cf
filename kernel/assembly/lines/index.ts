import { attributeCount, cellsEnd, forgetNames, MAX_ATTRIBUTES, nameCount, roles } from './attributes-reader';
import { ATTRIBUTE_COUNT, ROLES } from './cells';
import { isEnd, MAX_LINE_CELLS, readLine } from './line-reader';
import { CELLS, CELLS_END, LINES, LINES_END, NAMES, NAMES_END } from './memory-map';

export { CELLS, CHUNK, CHUNK_END, LINES, NAMES, TEMPLATES, TEMPLATES_END, TRACE_ID } from './memory-map';
export { EVENT_PLANS, HELD, HELD_CELLS, HELD_LINES, MAX_PLANS, OPEN_TEXTS, PLANS, SHOWN_TEXT, SPANS, WRITTEN } from './memory-map';
export { forgetTexts, keepShown, setTextRun } from './shown-texts';
export { beginSpans, openEnd, setRules, spansEnd, unknownLength, unknownText, unknownTreatment, writeSpans } from './span-writer';
export { forgetNames } from './attributes-reader';
export { setEvents } from './line-reader';
export { setRun } from './seen-names';

/** Numbers of a line: where it begins and its line break stands, its first cell and the one behind its last, whether it is an end, its first name cell and how many there are. */
const LINE_NUMBERS: u32 = 7;

/** Where the latest run stopped. */
export let stoppedAt: u32 = 0;

/**
 * Reads lines of spans that stand from `at` to `end`, the last one with its line break. Returns how many; it stops before
 * the first that it does not know, or when there is no room for what it reads.
 */
export function run(at: u32, end: u32): u32 {
  let count: u32 = 0;
  let cells: u32 = CELLS;
  let names: u32 = NAMES;
  let line: u32 = LINES;
  while (
    at < end &&
    line + 4 * LINE_NUMBERS <= LINES_END &&
    cells + 4 * MAX_LINE_CELLS <= CELLS_END &&
    names + 4 * MAX_ATTRIBUTES <= NAMES_END
  ) {
    const lineBreak = <u32>readLine(at, cells, names);
    if (lineBreak == 0) {
      // What it may have noted of names did not reach JavaScript.
      forgetNames();
      break;
    }
    store<u32>(cells + 4 * ATTRIBUTE_COUNT, attributeCount);
    store<u32>(cells + 4 * ROLES, roles);
    store<u32>(line, at);
    store<u32>(line + 4, lineBreak);
    store<u32>(line + 8, cells >> 2);
    store<u32>(line + 12, cellsEnd >> 2);
    store<u32>(line + 16, isEnd ? 1 : 0);
    store<u32>(line + 20, names >> 2);
    store<u32>(line + 24, nameCount);
    names += 4 * nameCount;
    cells = cellsEnd;
    line += 4 * LINE_NUMBERS;
    at = lineBreak + 1;
    count += 1;
  }
  stoppedAt = at;
  return count;
}
