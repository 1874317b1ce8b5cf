import { COMMA, OPEN_LIST, QUOTE } from '../json-bytes';
import { isSame } from '../bytes';
import { readAttributes } from './attributes-reader';
import {
  END_TIME,
  EVENT,
  FIRST_LINK,
  LINK_COUNT,
  MESSAGE_END,
  MESSAGE_START,
  NAME_END,
  NAME_START,
  PARENT,
  SPAN,
  START_TIME,
  STATUS_CODE,
} from './cells';
import * as text from './literals';
import { isAt, lengthOf } from './literals';
import { TRACE_ID } from './memory-map';
import { areHex, bytesOf, endOfPlain, nibbles } from './plain-text';
import { EventType } from './templates';

const MAX_LINKS: u32 = 16;
export const MAX_LINE_CELLS: u32 = 17 + 2 * 16 + 3 * 128;


/** First of the event types, and the one that came last. */
let events: usize = 0;
let lastEvent: usize = 0;

export function setEvents(first: usize): void {
  events = first;
}

/** Whether the line in hand is a span's end. */
export let isEnd: bool = false;

let cells: u32 = 0;
let line: usize = 0;

@inline
function setCell(which: u32, value: u32): void {
  store<u32>(cells + 4 * which, value);
}

/**
 * Reads a span's line to its cells, as `LineScanner.scan` does. Returns where its line break stands; 0 where JavaScript
 * has to look at it. Every text that is looked for, and every loop, ends at a line break, of which there is one.
 */
export function readLine(at: usize, toCells: u32, names: u32): usize {
  cells = toCells;
  line = at;
  isEnd = isAt(text.RECORD_END, at);
  if (isEnd) at += lengthOf(text.RECORD_END);
  else if (isAt(text.RECORD_START, at)) at += lengthOf(text.RECORD_START);
  else return 0;
  if (!isSame(TRACE_ID, at, 32) || !isAt(text.SPAN_ID, at + 32)) return 0;
  at += 32 + lengthOf(text.SPAN_ID);
  if (!readId(SPAN, at) || !isAt(text.SPAN_NAME, at + 16)) return 0;
  at += 16 + lengthOf(text.SPAN_NAME);
  setCell(NAME_START, <u32>(at - line));
  at = endOfPlain(at);
  setCell(NAME_END, <u32>(at - line));
  at = readParent(at);
  if (at == 0) return 0;
  at = readLinks(at);
  if (at == 0) return 0;
  at = readTime(START_TIME, at);
  if (at == 0) return 0;
  if (isEnd) {
    if (!isAt(text.END_TIME, at)) return 0;
    at = readTime(END_TIME, at + lengthOf(text.END_TIME));
    if (at == 0) return 0;
  }
  at = readSeverity(at);
  if (at == 0) return 0;
  if (isEnd) {
    at = readStatus(at);
    if (at == 0) return 0;
  }
  const event = eventAt(at);
  if (event == null) return 0;
  setCell(EVENT, event.index);
  const first = cells + 4 * (FIRST_LINK + 2 * load<u32>(cells + 4 * LINK_COUNT));
  return readAttributes(at + event.tailLength, line, event, isEnd, first, names);
}

/** 16 hexadecimal digits that are not all 0. */
@inline
function readId(cell: u32, at: usize): bool {
  const values = nibbles(at);
  if (!areHex(values) || !v128.any_true(values)) return false;
  const bytes = bytesOf(values);
  setCell(cell, bswap<u32>(<u32>bytes));
  setCell(cell + 1, bswap<u32>(<u32>(bytes >> 32)));
  return true;
}

@inline
function readParent(at: usize): usize {
  if (isAt(text.NO_PARENT, at)) {
    setCell(PARENT, 0);
    setCell(PARENT + 1, 0);
    return at + lengthOf(text.NO_PARENT);
  }
  if (!isAt(text.PARENT, at)) return 0;
  at += lengthOf(text.PARENT);
  if (!readId(PARENT, at) || !isAt(text.LINKS, at + 16)) return 0;
  return at + 16 + lengthOf(text.LINKS);
}

@inline
function readLinks(at: usize): usize {
  setCell(LINK_COUNT, 0);
  return isAt(text.NO_LINKS, at) ? at + lengthOf(text.NO_LINKS) : readSomeLinks(at);
}

function readSomeLinks(at: usize): usize {
  if (load<u8>(at) != OPEN_LIST) return 0;
  at += 1;
  for (let count: u32 = 0; count < MAX_LINKS; count++) {
    if (!isAt(text.LINK, at)) return 0;
    at += lengthOf(text.LINK);
    setCell(FIRST_LINK + 2 * count, <u32>(at - line));
    const upper = nibbles(at);
    const lower = nibbles(at + 16);
    if (!areHex(upper) || !areHex(lower) || !v128.any_true(v128.or(upper, lower))) return 0;
    if (!isAt(text.SPAN_ID, at + 32)) return 0;
    at += 32 + lengthOf(text.SPAN_ID);
    setCell(FIRST_LINK + 2 * count + 1, <u32>(at - line));
    const span = nibbles(at);
    if (!areHex(span) || !v128.any_true(span) || !isAt(text.LINK_END, at + 16)) return 0;
    at += 16 + lengthOf(text.LINK_END);
    setCell(LINK_COUNT, count + 1);
    if (isAt(text.LAST_LINK, at)) return at + lengthOf(text.LAST_LINK);
    if (load<u8>(at++) != COMMA) return 0;
  }
  return 0;
}

/** 10 to 19 digits of nanoseconds. */
@inline
function readTime(cell: u32, at: usize): usize {
  const digits = i8x16.lt_u(i8x16.sub(v128.load(at), i8x16.splat(0x30)), i8x16.splat(10));
  let end = at + ctz(~i8x16.bitmask(digits));
  while (<u8>(load<u8>(end) - 0x30) < 10) end++;
  const count = <u32>(end - at);
  if (count < 10 || count > 19) return 0;
  const secondsEnd = end - 9;
  let seconds: u64 = 0;
  for (; at < secondsEnd; at++) seconds = seconds * 10 + (load<u8>(at) - 0x30);
  if (seconds > 0xffffffff) return 0;
  let nanos: u32 = 0;
  for (; at < end; at++) nanos = nanos * 10 + (load<u8>(at) - 0x30);
  setCell(cell, <u32>seconds);
  setCell(cell + 1, nanos);
  return end;
}

@inline
function readSeverity(at: usize): usize {
  if (!isAt(text.SEVERITY_NUMBER, at)) return 0;
  at += lengthOf(text.SEVERITY_NUMBER);
  const first = <u8>(load<u8>(at++) - 0x30);
  if (first > 9) return 0;
  if (<u8>(load<u8>(at) - 0x30) < 10) {
    if (first == 0) return 0;
    at++;
  }
  if (!isAt(text.SEVERITY_TEXT, at)) return 0;
  at = endOfPlain(at + lengthOf(text.SEVERITY_TEXT));
  const behind = isEnd ? text.STATUS : text.EVENT_TYPE;
  return isAt(behind, at) ? at + lengthOf(behind) : 0;
}

@inline
function readStatus(at: usize): usize {
  setCell(STATUS_CODE, 0);
  setCell(MESSAGE_START, 0);
  setCell(MESSAGE_END, 0);
  if (isAt(text.NO_STATUS, at)) return at + lengthOf(text.NO_STATUS);
  if (isAt(text.NO_MESSAGE, at)) at += lengthOf(text.NO_MESSAGE);
  else {
    if (!isAt(text.MESSAGE, at)) return 0;
    at += lengthOf(text.MESSAGE);
    setCell(MESSAGE_START, <u32>(at - line));
    at = endOfPlain(at);
    setCell(MESSAGE_END, <u32>(at - line));
    if (!isAt(text.STATUS_CODE, at)) return 0;
    at += lengthOf(text.STATUS_CODE);
  }
  const code = <u8>(load<u8>(at++) - 0x30);
  if (code > 2 || !isAt(text.STATUS_END, at)) return 0;
  setCell(STATUS_CODE, code);
  return at + lengthOf(text.STATUS_END);
}

@inline
function eventAt(at: usize): EventType | null {
  let event = changetype<EventType | null>(lastEvent);
  if (event != null && isSame(event.tail, at, event.tailLength)) return event;
  event = changetype<EventType | null>(events);
  while (event != null) {
    if (isSame(event.tail, at, event.tailLength)) {
      lastEvent = changetype<usize>(event);
      return event;
    }
    event = event.next;
  }
  return null;
}
