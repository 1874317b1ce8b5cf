import type { Resource } from '../record/resource.js';

/** Whole lines of a record log as they stand there, all of one resource. Lent for the time of a call. */
export interface LoggedLines {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Each with its line break. */
  readonly lines: Uint8Array;
}

/** Cuts lines in two: those that begin before an offset of the log, and the others. Either part may be empty. */
export function cutLines(whole: LoggedLines, atOffset: number): readonly [LoggedLines, LoggedLines] {
  const { resource, offset, lines } = whole;
  // The first line that begins at the offset or behind it, which need not be where a line begins.
  const from = atOffset - offset - 1;
  const lineBreak = from < 0 ? -1 : lines.indexOf(LINE_BREAK, from);
  const cut = from < 0 ? 0 : lineBreak === -1 ? lines.length : lineBreak + 1;
  return [
    { resource, offset, lines: lines.subarray(0, cut) },
    { resource, offset: offset + cut, lines: lines.subarray(cut) },
  ];
}

const LINE_BREAK = 0x0a;
