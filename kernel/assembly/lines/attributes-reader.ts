import { BACKSLASH, CLOSE, CLOSE_LIST, COMMA, OPEN, OPEN_LIST, QUOTE } from '../json-bytes';
import { isSame } from '../bytes';
import { FALSE, isAt, NULL, TRUE } from './literals';
import { NAMES } from './memory-map';
import { endOfPlain } from './plain-text';
import { beginNames, isSeen, IS_NAME, IS_NODE, keepNames } from './seen-names';
import { ADAPTER, EventType, NAME, Plan } from './templates';
import * as value from './values';

export const MAX_ATTRIBUTES: u32 = 128;
const LINE_BREAK: u8 = 0x0a;

/** What was read of the line in hand. */
export let attributeCount: u32 = 0;
export let roles: u32 = 0;
/** Where the cells of its attributes end. */
export let cellsEnd: u32 = 0;
/** How many cells of names were noted. */
export let nameCount: u32 = 0;

/** Whether JavaScript has seen a span of the same node that said as much of it: its database and its schema. */
export let isNodeKnown: bool = false;

/** Bits of the roles `unique_id`, `database` and `schema`: see `ROLES` of src/exporter/lines/attribute-plan.ts. */
const UNIQUE_ID: u32 = 1;
const PLACE_ROLES: u32 = 7;
/** How many of them the line has, and its `unique_id`. */
let placeCount: u32 = 0;
let nodeStart: usize = 0;
let nodeLength: u32 = 0;

/** A name that came with the same attribute in this generation need not be taught again. */
let generation: u32 = 1;
let lineNumber: u32 = 0;

/** What was taught so far is to be taught again. */
export function forgetNames(): void {
  generation++;
}

let valueKind: u32 = 0;
let valueStart: usize = 0;
let valueEnd: usize = 0;

/**
 * Reads attributes from behind the opening brace to the end of the line. Returns where the line break stands; 0 where
 * JavaScript has to look at the line.
 */
export function readAttributes(at: usize, line: usize, event: EventType, isEnd: bool, cell: u32, names: u32): usize {
  attributeCount = roles = nameCount = placeCount = 0;
  beginNames();
  lineNumber++;
  let previous = changetype<Plan>(event);
  if (load<u8>(at) == CLOSE) at += 1;
  else
    while (true) {
      const expected = isEnd ? previous.nextInEnd : previous.nextInStart;
      let plan = expected;
      if (plan == null || !isSame(plan.quoted, at, plan.quotedLength)) {
        plan = find(event, at);
        if (plan == null) return 0;
        if (isEnd) previous.nextInEnd = plan;
        else previous.nextInStart = plan;
      }
      if (plan.lineNumber == lineNumber || attributeCount >= MAX_ATTRIBUTES) return 0;
      plan.lineNumber = lineNumber;
      attributeCount++;
      previous = plan;
      roles |= plan.role;
      at = readValue(at + plan.quotedLength);
      if (at == 0 || (valueKind == value.OTHER_TEXT && plan.isReadAtOnce != 0)) return 0;
      store<u32>(cell, plan.cell | valueKind);
      store<u32>(cell + 4, <u32>(valueStart - line));
      store<u32>(cell + 8, <u32>(valueEnd - line));
      if (plan.teaches != 0 && isNew(plan)) store<u32>(names + 4 * nameCount++, cell >> 2);
      if ((plan.role & PLACE_ROLES) != 0 && valueKind == value.PLAIN_TEXT) notePlace(plan.role);
      cell += 12;
      const next = load<u8>(at++);
      if (next == CLOSE) break;
      if (next != COMMA) return 0;
    }
  cellsEnd = cell;
  if (load<u16>(at) != 0x0a7d) return 0;
  isNodeKnown = event.outcome != null && placeCount == 3 && isSeen(nodeStart, nodeLength, IS_NODE);
  keepNames();
  return at + 1;
}

@inline
function notePlace(role: u32): void {
  placeCount++;
  if (role != UNIQUE_ID) return;
  nodeStart = valueStart;
  nodeLength = <u32>(valueEnd - valueStart);
}

/** Whether a name has to be looked at; notes it. */
@inline
function isNew(plan: Plan): bool {
  if (plan.teaches == ADAPTER) return true;
  // Anything else is no text: one with escapes was left to JavaScript.
  if (valueKind != value.PLAIN_TEXT) return false;
  const length = <u32>(valueEnd - valueStart);
  if (plan.generation == generation && plan.taughtLength == length && isSame(plan.taught, valueStart, length)) return false;
  plan.generation = generation;
  plan.taught = valueStart;
  plan.taughtLength = length;
  return !isSeen(valueStart, length, IS_NAME);
}

function find(event: EventType, at: usize): Plan | null {
  let plan = event.first;
  while (plan != null) {
    if (isSame(plan.quoted, at, plan.quotedLength)) return plan;
    plan = plan.sibling;
  }
  return null;
}

@inline
function isDigit(byte: u8): bool {
  return <u8>(byte - 0x30) < 10;
}

/** Finds a value's kind, begin and end. Returns where it ends with its quotes; 0 where it does not end. */
@inline
function readValue(at: usize): usize {
  const first = load<u8>(at);
  valueStart = at;
  if (first == QUOTE) {
    const end = endOfPlain(at + 1);
    if (load<u8>(end) != QUOTE) return readOther(at, value.OTHER_TEXT);
    valueKind = value.PLAIN_TEXT;
    valueStart = at + 1;
    valueEnd = end;
    return end + 1;
  }
  if (isDigit(first)) {
    let end = at + 1;
    while (isDigit(load<u8>(end))) end++;
    const behind = load<u8>(end);
    const isCanonical = first != 0x30 || end == at + 1;
    if ((behind != COMMA && behind != CLOSE) || !isCanonical || end > at + 15) return readOther(at, value.OTHER);
    valueKind = value.INTEGER;
    valueEnd = end;
    return end;
  }
  if (isAt(TRUE, at)) return ended(at + 4, value.TRUE);
  if (isAt(FALSE, at)) return ended(at + 5, value.FALSE);
  if (isAt(NULL, at)) return ended(at + 4, value.NULL);
  return readOther(at, value.OTHER);
}

@inline
function ended(end: usize, kind: u32): usize {
  valueKind = kind;
  valueEnd = end;
  return end;
}

/** A value up to the comma or brace behind it. */
function readOther(at: usize, kind: u32): usize {
  const start = at;
  let depth: u32 = 0;
  while (true) {
    const byte = load<u8>(at);
    if (byte == LINE_BREAK) return 0;
    if (byte == QUOTE) {
      at++;
      while (true) {
        const inside = load<u8>(at);
        if (inside == QUOTE) break;
        if (inside == BACKSLASH) at++;
        if (load<u8>(at) == LINE_BREAK) return 0;
        at++;
      }
    } else if (byte == OPEN || byte == OPEN_LIST) depth++;
    else if (byte == CLOSE || byte == CLOSE_LIST) {
      if (depth == 0) break;
      depth--;
    } else if (byte == COMMA && depth == 0) break;
    at++;
  }
  return at > start ? ended(at, kind) : 0;
}
