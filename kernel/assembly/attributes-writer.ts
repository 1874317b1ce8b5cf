import { OPEN, OPEN_LIST, QUOTE } from './json-bytes';
import { copy, isSame } from './bytes';
import * as cells from './cells';
import { short } from './digits';
import { jsonText } from './json-text';
import * as span from './span-reader';
import { ABSENT, CONSTANT, ENUM, Field, IF_CONSTANT, INT64, Layout, NESTED, SAME, SPECIAL } from './templates';


/**
 * Writes the start's attributes, each behind a comma, and notes where they stand. Returns where they end; 0 where one has
 * a value that JavaScript has to look at.
 */
export function writeStartAttributes(to: usize, layout: Layout): usize {
  for (let place: u32 = 0; place < layout.count; place++) {
    const index = load<u8>(layout.order + place);
    const field = fieldAt(index);
    const before = to;
    let isSameAtEnd = false;
    switch (field.start) {
      case ABSENT:
        break;
      case CONSTANT:
        to = copy(to, field.quoted, field.quotedLength);
        to = copy(to, field.startJson, field.startJsonLength);
        break;
      default:
        to = copy(to, field.quoted, field.quotedLength);
        const value = to;
        to = writeValue(to, field, index);
        if (to == 0) return 0;
        isSameAtEnd = field.start == SAME || isConstant(field, value, to);
        if (!isSameAtEnd) to = before;
    }
    note(index, isSameAtEnd ? before : 0, to);
  }
  return to;
}

/** As the start's, all of them; and notes in the page where the watched ones stand. */
export function writeEndAttributes(to: usize, layout: Layout, base: u32): usize {
  // Attributes that stand side by side at the start are copied in one go.
  let stretch: usize = 0;
  let stretchEnd: usize = 0;
  for (let place: u32 = 0; place < layout.count; place++) {
    const index = load<u8>(layout.order + place);
    const from: usize = load<u32>(span.FROM + 4 * index);
    const field = fieldAt(index);
    if (from != 0 && (stretch == 0 || from == stretchEnd)) {
      if (stretch == 0) stretch = from;
      stretchEnd = load<u32>(span.TO + 4 * index);
    } else {
      if (stretch != 0) to = copy(to, stretch, <u32>(stretchEnd - stretch));
      stretch = from;
      stretchEnd = load<u32>(span.TO + 4 * index);
      if (from == 0) {
        const before = to;
        to = writeValue(copy(to, field.quoted, field.quotedLength), field, index);
        if (to == 0) return 0;
        note(index, before, to);
      }
    }
    if (field.cell != 0) watch(field, index, base);
  }
  return stretch == 0 ? to : copy(to, stretch, <u32>(stretchEnd - stretch));
}

/** Ends a line whose attributes, if it has any, stand between the two. */
@inline
export function closed(attributes: usize, to: usize): usize {
  if (to == attributes) to += 1;
  store<u16>(to, 0x7d7d);
  store<u8>(to + 2, 0x0a);
  return to + 3;
}

@inline
function fieldAt(index: u32): Field {
  return changetype<Field>(<usize>load<u32>(span.FIELDS + 4 * index));
}

@inline
function note(index: u32, from: usize, to: usize): void {
  store<u32>(span.FROM + 4 * index, <u32>from);
  store<u32>(span.TO + 4 * index, <u32>to);
}

@inline
function isConstant(field: Field, value: usize, end: usize): bool {
  const length = <u32>(end - value);
  return length == field.startJsonLength && isSame(value, field.startJson, length);
}

/** Notes where a watched attribute's value stands; in the start's line where it is copied from there: it is the same. */
function watch(field: Field, index: u32, base: u32): void {
  const value = load<u32>(span.FROM + 4 * index) + field.quotedLength;
  if (field.cell == SPECIAL || load<u8>(value) != QUOTE) {
    cells.setCell(cells.IS_SPECIAL, 1);
    return;
  }
  cells.setCell(field.cell, value + base);
  cells.setCell(field.cell + 1, load<u32>(span.TO + 4 * index) + base);
}

@inline
function writeValue(to: usize, field: Field, index: u32): usize {
  const value = load<u32>(span.VALUES + 4 * index);
  const size = load<u32>(span.SIZES + 4 * index);
  if (size >> span.KIND_SHIFT == span.STRING) {
    if (field.kind == ENUM || (field.kind == NESTED && isNested(value, size))) return writeKnown(to, field, value, size);
    return jsonText(to, value, size);
  }
  return writeNumber(to, field, value, size >> span.KIND_SHIFT);
}

@inline
function isNested(text: usize, length: u32): bool {
  const first = load<u8>(text);
  return length > 0 && (first == OPEN || first == OPEN_LIST);
}

/** The JSON of a value that came before; 0 for a new one. */
function writeKnown(to: usize, field: Field, text: usize, length: u32): usize {
  let known = field.known;
  while (known != null) {
    if (known.textLength == length && isSame(changetype<usize>(known) + 16, text, length)) {
      return copy(to, known.json, known.jsonLength);
    }
    known = known.next;
  }
  return 0;
}

function writeNumber(to: usize, field: Field, value: u32, kind: u32): usize {
  if (kind == span.BOOL) {
    store<u64>(to, value != 0 ? 0x65757274 : 0x65736c6166); // true, false
    return to + (value != 0 ? 4 : 5);
  }
  // An enum's number needs its name.
  if (field.kind == ENUM) return 0;
  if (field.kind != INT64) return short(to, value);
  store<u8>(to, QUOTE);
  to = short(to + 1, value);
  store<u8>(to, QUOTE);
  return to + 1;
}
