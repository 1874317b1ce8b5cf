import { copy, isSame } from '../bytes';
import { FIRST_LINK, LINK_COUNT, MESSAGE_END, MESSAGE_START, NAME_END, NAME_START, ROLES, STATUS_CODE } from './cells';
import { ATTRIBUTE_COUNT, END_TIME, EVENT } from './cells';
import { setFailure, writeErrorStatus, writeErrorType, writeException } from './failure-writer';
import { DENY, EventType, FIRST_SHOWN, HEADLINE, INT64, KEEP, MESSAGE, NODE_ERROR_TYPE, NOT_HERE, Outcome, Plan } from './templates';
import { EVENT_PLANS, HELD, HELD_CELLS, HELD_LINES, MAX_PLANS, PLANS } from './memory-map';
import { OPEN_TEXTS, OPEN_TEXTS_END, SPANS, SPANS_END, WRITTEN } from './memory-map';
import { cellOf, timeOf, writeHead, writeLink } from './span-frame';
import { MAX_LENGTH, ShownText, shownText } from './shown-texts';
import { FALSE, INTEGER, NULL, PLAIN_TEXT, TRUE } from './values';
import { boolAttribute, numberAttribute, textAttribute, varint } from './wire';

// Writes held spans as OTLP has them: what SpanTranscoder does for those of which nothing but their line has to be asked.

/** Numbers of a line in `HELD_LINES`: where it begins and ends in `HELD`, and its first cell in `HELD_CELLS`. */
const HELD_NUMBERS: u32 = 3;
/** Numbers of a span in `WRITTEN`: where it begins and ends in `SPANS`, where its open texts begin in `OPEN_TEXTS`, how many. Both ends are 0 for one that is JavaScript's. */
const WRITTEN_NUMBERS: u32 = 4;
/** Bit of the last number where the span is that of a failed node. */
const FAILED: u32 = 0x10000;
/** More than the parts of a span take that are not attributes, their longest lengths included. */
const FRAME_BYTES: u32 = 1280;
const MAX_LINKS: u32 = 16;
/** More than an attribute takes beside its value. */
const ATTRIBUTE_BYTES: u32 = 160;
/** Longest value or name that is written. */
const MAX_VALUE: u32 = 16_000;
const MAX_DIGITS: u32 = 15;

/** Attributes that are JavaScript's, by the bits of their roles; whether failed nodes are, and whether texts are redacted. */
let otherRoles: u32 = 0;
let otherFailures: bool = false;
let isRedacted: bool = true;
/** The text that JavaScript has to say how it is shown; its length is 0 where there is none. */
export let unknownText: u32 = 0;
export let unknownLength: u32 = 0;
export let unknownTreatment: u32 = 0;

let heldBytes: usize = HELD;
let heldCells: u32 = HELD_CELLS;
/** Where the open texts and the spans that were written end. */
export let openEnd: u32 = OPEN_TEXTS;
export let spansEnd: u32 = SPANS;

export function setRules(roles: u32, areFailuresOthers: bool, areTextsRedacted: bool): void {
  otherRoles = roles;
  otherFailures = areFailuresOthers;
  isRedacted = areTextsRedacted;
}

/** Begins with other lines; what `HELD_LINES` says of bytes and cells is so much too high. */
export function beginSpans(bytesBefore: u32, cellsBefore: u32): void {
  heldBytes = HELD - bytesBefore;
  heldCells = HELD_CELLS - 4 * cellsBefore;
  openEnd = OPEN_TEXTS;
  spansEnd = SPANS;
}

/**
 * Writes the spans of held lines, from one number up to another. Returns the number of the first that it did not look at:
 * because there is no room, or a text is not known.
 */
export function writeSpans(from: u32, to: u32): u32 {
  for (let number = from; number < to; number++) {
    unknownLength = 0;
    const held = HELD_LINES + 4 * HELD_NUMBERS * number;
    const written = WRITTEN + 4 * WRITTEN_NUMBERS * number;
    const openStart = openEnd;
    isFailure = false;
    const end = writeSpan(heldBytes + load<u32>(held), heldCells + 4 * load<u32>(held + 8));
    if (end == FULL || unknownLength != 0) {
      openEnd = openStart;
      return number;
    }
    if (end == 0) openEnd = openStart;
    store<u32>(written, end == 0 ? 0 : <u32>(spanStart - SPANS));
    store<u32>(written + 4, end == 0 ? 0 : <u32>(end - SPANS));
    store<u32>(written + 8, (openStart - OPEN_TEXTS) >> 2);
    store<u32>(written + 12, ((openEnd - openStart) >> 2) | (isFailure ? FAILED : 0));
    if (end != 0) spansEnd = <u32>end;
  }
  return to;
}

const FULL: usize = 1;
/** Whether the span in hand is that of a failed node. */
let isFailure: bool = false;
/** Where the span in hand begins, once its length is known. */
let spanStart: usize = 0;

/** Returns where it ends; 0 for a span that is JavaScript's, `FULL` where there is no room. */
function writeSpan(line: usize, cells: u32): usize {
  const event = changetype<EventType | null>(load<u32>(EVENT_PLANS + 4 * cellOf(cells, EVENT)));
  if (event == null || event.spanKind == 0 || (cellOf(cells, ROLES) & otherRoles) != 0) return 0;
  const begin: usize = spansEnd;
  const nameLength = cellOf(cells, NAME_END) - cellOf(cells, NAME_START);
  if (nameLength > MAX_VALUE || cellOf(cells, LINK_COUNT) > MAX_LINKS) return 0;
  if (begin + FRAME_BYTES + nameLength > SPANS_END) return FULL;
  // Behind its tag and its length, which mostly takes two bytes.
  let to = begin + 3;
  to = writeHead(to, line, cells, event.spanKind);
  to = copy(to, event.typeAttribute, event.typeAttributeLength);
  to = writeAttributes(to, line, cells, event);
  if (to <= FULL) return to;
  if (!isFailure && cellOf(cells, STATUS_CODE) > 1) return 0;
  store<u16>(to, 0x0050);
  to = writeTail(to + 2, line, cells);
  return closeSpan(begin, to);
}

/** Writes tag and length before a span. Returns where it ends then. */
@inline
function closeSpan(begin: usize, end: usize): usize {
  const length = <u32>(end - begin - 3);
  spanStart = begin;
  if (length < 0x80) {
    spanStart = begin + 1;
    store<u8>(begin + 2, <u8>length);
  } else if (length < 0x4000) {
    varint(begin + 1, length);
  } else {
    memory.copy(begin + 4, begin + 3, length);
    varint(begin + 1, length);
    end++;
  }
  store<u8>(spanStart, SPAN_TAG);
  return end;
}

const SPAN_TAG: u8 = 0x12;

/** The line's attributes and what they add. Returns 0 or `FULL` as `writeSpan`. */
function writeAttributes(to: usize, line: usize, cells: u32, event: EventType): usize {
  let outcome: Outcome | null = null;
  let errorType: usize = 0;
  let errorTypeLength: u32 = 0;
  let cell = cells + 4 * (FIRST_LINK + 2 * cellOf(cells, LINK_COUNT));
  for (let left = cellOf(cells, ATTRIBUTE_COUNT); left > 0; left--, cell += 12) {
    const first = load<u32>(cell);
    const kind = first & KIND_MASK;
    const index = first >> PLAN_SHIFT;
    const from = line + load<u32>(cell + 4);
    const length = load<u32>(cell + 8) - load<u32>(cell + 4);
    if (index >= MAX_PLANS || length > MAX_VALUE) return 0;
    const plan = changetype<Plan>(load<u32>(PLANS + 4 * index));
    if (changetype<usize>(plan) == 0) return 0;
    if (to + ATTRIBUTE_BYTES + FRAME_BYTES + (length > MAX_SHOWN ? length : MAX_SHOWN) > SPANS_END) return FULL;
    if (kind == PLAIN_TEXT) {
      to = writeText(to, plan, from, length);
      if (to == 0) return 0;
      const role = (first >> ROLE_SHIFT) & ROLE_MASK;
      if (role == NODE_OUTCOME) outcome = outcomeOf(event, from, length);
      else if (role == ERROR_TYPE) {
        errorType = from;
        errorTypeLength = length;
      }
    } else if (kind == INTEGER) {
      if (plan.treatment == NOT_HERE) return 0;
      if (isRedacted && plan.treatment == DENY) continue;
      to = numberAttribute(to, plan.key, plan.keyLength, numberOf(from, length));
    } else if (kind == TRUE || kind == FALSE) {
      to = boolAttribute(to, plan.key, plan.keyLength, kind == TRUE);
    } else if (kind != NULL) return 0;
  }
  if (event.outcome == null) return to;
  if (outcome == null) return 0;
  to = copy(to, outcome.verdict, outcome.verdictLength);
  return outcome.isFailure == 0 ? to : writeFailure(to, line, cells, errorType, errorTypeLength);
}

/** Returns 0 or `FULL` as `writeSpan`. */
function writeFailure(to: usize, line: usize, cells: u32, errorType: usize, errorTypeLength: u32): usize {
  if (otherFailures) return 0;
  const start = cellOf(cells, MESSAGE_START);
  const length = cellOf(cells, MESSAGE_END) - start;
  if (length == 0 || length > MAX_LENGTH || errorTypeLength > MAX_LENGTH) return 0;
  if (to + FRAME_BYTES + 3 * MAX_SHOWN > SPANS_END) return FULL;
  const message = askedText(MESSAGE, line + start, length);
  if (message == null) return 0;
  const headline = askedText(HEADLINE, line + start, length);
  if (headline == null) return 0;
  let type: ShownText | null = null;
  if (errorTypeLength != 0) {
    type = askedText(NODE_ERROR_TYPE, errorType, errorTypeLength);
    if (type == null) return 0;
  }
  setFailure(type, message, headline);
  isFailure = true;
  return writeErrorType(to);
}

const PLAN_SHIFT: u32 = 8;
const ROLE_SHIFT: u32 = 3;
const ROLE_MASK: u32 = 31;
const KIND_MASK: u32 = 7;
const MAX_SHOWN: u32 = 3584;
/** Numbers of the roles of `node_outcome` and `node_error_type`, plus one: see `ROLES` of src/exporter/lines/attribute-plan.ts. */
const NODE_OUTCOME: u32 = 11;
const ERROR_TYPE: u32 = 12;

@inline
function outcomeOf(event: EventType, at: usize, length: u32): Outcome | null {
  let outcome = event.outcome;
  while (outcome != null) {
    if (outcome.valueLength == length && isSame(outcome.value, at, length)) return outcome;
    outcome = outcome.next;
  }
  return null;
}

/** Returns 0 where JavaScript has to write the span, or say how the text is shown: see `unknownText`. */
@inline
function writeText(to: usize, plan: Plan, from: usize, length: u32): usize {
  const key = plan.key;
  const keyLength = plan.keyLength;
  const treatment = plan.treatment;
  if (treatment == INT64) {
    if (length == 0 || length > MAX_DIGITS || !areDigits(from, length)) return 0;
    return numberAttribute(to, key, keyLength, numberOf(from, length));
  }
  if (treatment == NOT_HERE) return 0;
  if (!isRedacted || treatment == KEEP) return textAttribute(to, key, keyLength, from, length);
  if (treatment == DENY) return textAttribute(to, key, keyLength, QUESTION_MARK, 1);
  return writeShown(to, plan, from, length);
}

/** An address where a `?` stands. */
const QUESTION_MARK: usize = memory.data<u8>([0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

function writeShown(to: usize, plan: Plan, from: usize, length: u32): usize {
  if (length == 0) return textAttribute(to, plan.key, plan.keyLength, from, 0);
  if (length > MAX_LENGTH) return 0;
  const shown = askedText(plan.treatment - FIRST_SHOWN, from, length);
  return shown == null ? 0 : textAttribute(to, plan.key, plan.keyLength, shown.shown, shown.shownLength);
}

/** How a text is shown; null where JavaScript is to be asked, or has to write the span. */
function askedText(treatment: u32, from: usize, length: u32): ShownText | null {
  const shown = shownText(treatment, from, length);
  if (shown == null) {
    unknownText = <u32>from;
    unknownLength = length;
    unknownTreatment = treatment;
    return null;
  }
  if (shown.open != 0) {
    if (openEnd >= OPEN_TEXTS_END) return null;
    store<u32>(openEnd, shown.open - 1);
    openEnd += 4;
  }
  return shown;
}

function areDigits(at: usize, length: u32): bool {
  for (let index: u32 = 0; index < length; index++) if (<u8>(load<u8>(at + index) - 0x30) > 9) return false;
  return true;
}

function numberOf(at: usize, length: u32): u64 {
  let value: u64 = 0;
  for (let index: u32 = 0; index < length; index++) value = value * 10 + (load<u8>(at + index) - 0x30);
  return value;
}

/** Counts of what was dropped, links, status and flags. */
@inline
function writeTail(to: usize, line: usize, cells: u32): usize {
  if (isFailure) to = writeException(to, timeOf(cells + 4 * END_TIME));
  store<u16>(to, 0x0060);
  to += 2;
  const count = cellOf(cells, LINK_COUNT);
  for (let link: u32 = 0; link < count; link++) to = writeLink(to, line, cells + 4 * (FIRST_LINK + 2 * link));
  store<u16>(to, 0x0070);
  if (isFailure) to = writeErrorStatus(to + 2);
  else {
    store<u16>(to + 2, 0x027a);
    store<u16>(to + 4, <u16>(0x18 | (cellOf(cells, STATUS_CODE) << 8)));
    to += 6;
  }
  // Its flags: sampled, and it is known that it is not remote.
  store<u16>(to, 0x0185);
  store<u32>(to + 2, 0x0101);
  return to + 6;
}
