import { isSame, varint } from './bytes';
import { SCRATCH } from './memory-map';
import { EventType, eventTypes, Field, Layout, Step } from './templates';

/** Attributes of a span at most; JavaScript teaches no layout with more. */
export const MAX_ATTRIBUTES: u32 = 128;
/** Links of a span at most. */
const MAX_LINKS: u32 = 16;

/** Of each attribute as it came: where its text begins, or its number; how long the text is, with its kind in the highest bits. */
export const VALUES: usize = SCRATCH;
export const SIZES: usize = VALUES + 4 * MAX_ATTRIBUTES;
export const FIELDS: usize = SIZES + 4 * MAX_ATTRIBUTES;
/** Of each attribute as it is written: where it begins in the start's line with its comma, and ends; 0 where it is not there. */
export const FROM: usize = FIELDS + 4 * MAX_ATTRIBUTES;
export const TO: usize = FROM + 4 * MAX_ATTRIBUTES;
/** Where each link begins. */
export const LINKS: usize = TO + 4 * MAX_ATTRIBUTES;

export const KIND_SHIFT: u32 = 30;
export const STRING: u32 = 0;
export const BOOL: u32 = 1;
export const INT: u32 = 2;

export let traceId: usize = 0;
export let spanId: usize = 0;
/** 0 for none. */
export let parentSpanId: usize = 0;
export let name: usize = 0;
export let nameLength: u32 = 0;
export let startTime: usize = 0;
export let endTime: usize = 0;
export let status: u32 = 0;
export let message: usize = 0;
export let messageLength: u32 = 0;
export let linkCount: u32 = 0;
/** The index of the span's event type in the page. */
export let typeIndex: i32 = 0;

const TRACE_ID: u32 = 1;
const SPAN_ID: u32 = 2;
const PARENT: u32 = 4;
const NAME: u32 = 8;
const START: u32 = 16;
const END: u32 = 32;
const STATUS: u32 = 64;
/** Of this it needs all. */
const NEEDED: u32 = TRACE_ID | SPAN_ID | NAME | START | END;

/**
 * Finds the parts of the span from `at` to `end`, and how it is to be written. `null` where JavaScript has to look at it:
 * a field twice, attributes before the name, an unknown order of attributes, anything else that is not as usual.
 * May read up to 32 bytes beyond `end`, never believes them.
 */
export function readSpan(at: usize, end: usize): Layout | null {
  let seen: u32 = 0;
  let count: u32 = 0;
  let step: Step | null = null;
  parentSpanId = 0;
  status = 0;
  messageLength = 0;
  linkCount = 0;
  while (at < end) {
    const tag = load<u8>(at);
    at += 1;
    let field: u32 = 0;
    switch (tag) {
      case 0x4a: {
        if (step == null || count >= MAX_ATTRIBUTES) return null;
        const head = varint(load<u32>(at));
        at += head & 3;
        const attributeEnd = at + (head >> 2);
        if (head == 0 || attributeEnd > end) return null;
        step = following(step, at, attributeEnd);
        if (step == null || !readValue(at + step.field.headLength, attributeEnd, count << 2)) return null;
        store<u32>(FIELDS + (count << 2), <u32>changetype<usize>(step.field));
        count += 1;
        at = attributeEnd;
        break;
      }
      case 0x0a:
        field = TRACE_ID;
        if (load<u8>(at) != 16 || !v128.any_true(v128.load(at + 1))) return null;
        traceId = at + 1;
        at += 17;
        break;
      case 0x12:
        field = SPAN_ID;
        if (load<u8>(at) != 8 || load<u64>(at + 1) == 0) return null;
        spanId = at + 1;
        at += 9;
        break;
      case 0x22:
        field = PARENT;
        if (load<u8>(at) == 8) {
          if (load<u64>(at + 1) != 0) parentSpanId = at + 1;
          at += 9;
        } else if (load<u8>(at) == 0) at += 1;
        else return null;
        break;
      case 0x2a: {
        field = NAME;
        const head = varint(load<u32>(at));
        name = at + (head & 3);
        nameLength = head >> 2;
        at = name + nameLength;
        if (head == 0 || at > end) return null;
        step = firstStep();
        if (step == null) return null;
        break;
      }
      case 0x39:
        field = START;
        startTime = at;
        at += 8;
        break;
      case 0x41:
        field = END;
        endTime = at;
        at += 8;
        break;
      case 0x30:
        // The span's kind, which records do not have; JavaScript looks at longer ones.
        if (load<u8>(at) >= 0x80) return null;
        at += 1;
        break;
      case 0x6a:
        if (linkCount >= MAX_LINKS || !readLink(at, end)) return null;
        at += 1 + <u32>load<u8>(at);
        break;
      case 0x7a: {
        field = STATUS;
        const head = varint(load<u32>(at));
        at += head & 3;
        const statusEnd = at + (head >> 2);
        if (head == 0 || statusEnd > end || !readStatus(at, statusEnd)) return null;
        at = statusEnd;
        break;
      }
      case 0x85:
        // Flags.
        if (load<u8>(at) != 1) return null;
        at += 5;
        break;
      default:
        return null;
    }
    if ((seen & field) != 0) return null;
    seen |= field;
  }
  if (at != end || (seen & NEEDED) != NEEDED || step == null) return null;
  // A time beyond int64 is for the general decoder to reject.
  if (<i64>(load<u64>(startTime) | load<u64>(endTime)) < 0) return null;
  return step.layout;
}

/** The event type that the name's beginning tells, by its first step; `null` for none that is known. */
function firstStep(): Step | null {
  let type = changetype<EventType | null>(eventTypes);
  while (type != null) {
    if (type.beginningLength <= nameLength && isSame(type.beginning, name, type.beginningLength)) {
      typeIndex = type.index;
      return typeIndex < 0 ? null : type.first;
    }
    type = type.next;
  }
  return null;
}

/** The step that the attribute from `at` to `end` leads to. */
@inline
function following(step: Step, at: usize, end: usize): Step | null {
  let next = step.child;
  while (next != null) {
    const field = next.field;
    if (at + field.headLength < end && isSame(field.head, at, field.headLength)) break;
    next = next.sibling;
  }
  return next;
}

/** An attribute's value, which has to end where the attribute does. */
@inline
function readValue(at: usize, end: usize, place: u32): bool {
  const whole = varint(load<u32>(at));
  at += whole & 3;
  if (whole == 0 || at + (whole >> 2) != end || at >= end) return false;
  const tag = load<u8>(at);
  at += 1;
  if (tag == 0x0a) {
    const text = varint(load<u32>(at));
    at += text & 3;
    if (text == 0 || at + (text >> 2) != end) return false;
    store<u32>(VALUES + place, <u32>at);
    store<u32>(SIZES + place, (text >> 2) | (STRING << KIND_SHIFT));
    return true;
  }
  if (tag == 0x10) {
    if (at + 1 != end || load<u8>(at) > 1) return false;
    store<u32>(VALUES + place, load<u8>(at));
    store<u32>(SIZES + place, BOOL << KIND_SHIFT);
    return true;
  }
  return tag == 0x18 && readInteger(at, end, place);
}

/** A varint of up to four bytes: small and not negative, as all that the engine sends as numbers. */
function readInteger(at: usize, end: usize, place: u32): bool {
  const size = <u32>(end - at);
  if (size < 1 || size > 4) return false;
  const mask: u32 = size == 4 ? 0xffffffff : (1 << (8 * size)) - 1;
  const word = load<u32>(at) & mask;
  // All but the last byte have their highest bit set.
  if ((word & 0x80808080) != (0x00808080 & (mask >> 8))) return false;
  const low = (word & 0x7f) | ((word >> 1) & 0x3f80);
  store<u32>(VALUES + place, low | ((word >> 2) & 0x1fc000) | ((word >> 3) & 0xfe00000));
  store<u32>(SIZES + place, INT << KIND_SHIFT);
  return true;
}

/** A link of a trace id, a span id, and perhaps flags, in this order. */
function readLink(at: usize, end: usize): bool {
  const size = <u32>load<u8>(at);
  if ((size != 28 && size != 33) || at + 1 + size > end) return false;
  if (load<u16>(at + 1) != 0x100a || load<u16>(at + 19) != 0x0812) return false;
  if (size == 33 && load<u8>(at + 29) != 0x35) return false;
  if (!v128.any_true(v128.load(at + 3)) || load<u64>(at + 21) == 0) return false;
  store<u32>(LINKS + (linkCount << 2), <u32>at + 3);
  linkCount += 1;
  return true;
}

function readStatus(at: usize, end: usize): bool {
  while (at < end) {
    const tag = load<u8>(at);
    at += 1;
    if (tag == 0x12) {
      const head = varint(load<u32>(at));
      message = at + (head & 3);
      messageLength = head >> 2;
      at = message + messageLength;
      if (head == 0) return false;
    } else if (tag == 0x18) {
      status = load<u8>(at);
      at += 1;
      if (status >= 0x80) return false;
    } else return false;
  }
  return at == end;
}

/** Whether an attribute of the span that was read is this text. */
export function isText(index: u32, text: usize, length: u32): bool {
  if (load<u32>(SIZES + 4 * index) != (length | (STRING << KIND_SHIFT))) return false;
  return isSame(text, load<u32>(VALUES + 4 * index), length);
}
