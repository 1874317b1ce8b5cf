import { attributeCount, cellsEnd, forgetNames, isNodeKnown, MAX_ATTRIBUTES, nameCount, roles } from './attributes-reader';
import { ATTRIBUTE_COUNT, ROLES } from './cells';
import { areOfOneSpan } from './joined-lines';
import { isEnd, MAX_LINE_CELLS, readLine } from './line-reader';
import { CELLS, CELLS_END, LINES, LINES_END, NAMES, NAMES_END } from './memory-map';

export { CELLS, CHUNK, CHUNK_END, LINES, NAMES, TEMPLATES, TEMPLATES_END, TRACE_ID } from './memory-map';
export { EVENT_PLANS, HELD, HELD_CELLS, HELD_LINES, MAX_PLANS, OPEN_TEXTS, PLANS, SHOWN_TEXT, SPANS, WRITTEN } from './memory-map';
export { forgetTexts, keepShown, setTextRun } from './shown-texts';
export { beginSpans, openEnd, setRules, spansEnd, unknownLength, unknownText, unknownTreatment, writeSpans } from './span-writer';
export { forgetNames } from './attributes-reader';
export { setEvents } from './line-reader';
export { setRun } from './seen-names';

/** Numbers of a line: where it begins and its line break stands, its first cell and the one behind its last, what it is, its first name cell and how many there are. */
const LINE_NUMBERS: u32 = 7;
/** What a line is: an end; one that stands for its span's start as well, which was the line before; of a node that JavaScript knows. */
const IS_END: u32 = 1;
const IS_JOINED: u32 = 2;
const IS_NODE_KNOWN: u32 = 4;

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
    store<u32>(line + 16, (isEnd ? IS_END : 0) | (isNodeKnown ? IS_NODE_KNOWN : 0));
    store<u32>(line + 20, names >> 2);
    store<u32>(line + 24, nameCount);
    at = lineBreak + 1;
    if (isEnd && count > 0 && nameCount == 0 && isSilentStart(line - 4 * LINE_NUMBERS)) {
      const startCells = 4 * load<u32>(line - 4 * LINE_NUMBERS + 8);
      if (areOfOneSpan(startCells, load<u32>(line - 4 * LINE_NUMBERS), cells, load<u32>(line))) {
        memory.copy(line - 4 * LINE_NUMBERS, line, 4 * LINE_NUMBERS);
        store<u32>(line - 4 * LINE_NUMBERS + 16, load<u32>(line + 16) | IS_JOINED);
        cells = cellsEnd;
        continue;
      }
    }
    names += 4 * nameCount;
    cells = cellsEnd;
    line += 4 * LINE_NUMBERS;
    count += 1;
  }
  stoppedAt = at;
  return count;
}

/** Whether a line is a start without names that are new. */
@inline
function isSilentStart(line: u32): bool {
  return (load<u32>(line + 16) & IS_END) == 0 && load<u32>(line + 24) == 0;
}
