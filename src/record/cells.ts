import { REGION } from './arena.js';

/**
 * What is known of a record in numbers: a header of `HEADER` integers, then `ATTRIBUTE_CELLS` for each attribute. Places are those of
 * the arena. Made once, by the decoder, and handed on.
 */
export const Cell = {
  /** Number of the record's layout, which knows its event type and the names of its attributes. */
  layout: 0,
  /** Place of the 16 bytes of its trace id. */
  traceId: 1,
  /** The halves of the span's id; of a log record, of its span's. Two zeros for none, as in what follows. */
  idHigh: 2,
  idLow: 3,
  parentHigh: 4,
  parentLow: 5,
  /** The span's name; a log record's body. */
  textStart: 6,
  textEnd: 7,
  /** Unix nanoseconds, in halves. A log record has its time in both pairs. */
  startLow: 8,
  startHigh: 9,
  endLow: 10,
  endHigh: 11,
  /** A span's status; a log record's severity number. */
  code: 12,
  /** A status's message; a severity's text. */
  messageStart: 13,
  messageEnd: 14,
  /** The halves of the id of the span that it links to, one of the same trace. */
  linkHigh: 15,
  linkLow: 16,
  attributeCount: 17,
  /** The whole item on the wire, without its tag and length. */
  itemStart: 18,
  itemEnd: 19,
} as const;

export const HEADER = 20;

/** Numbers of an attribute. */
export const Attribute = {
  valueStart: 0,
  valueEnd: 1,
  /** One of `Value`. */
  kind: 2,
  /** Where its KeyValue begins, tag and length included. */
  start: 3,
  /** Number plus one of the remembered text that it is, once somebody has looked for it; 0 before. */
  text: 4,
} as const;

export const ATTRIBUTE_CELLS = 5;

export const Value = { text: 0, bool: 1, integer: 2 } as const;

const BYTES_A_CELL = 4;
/** Attributes of a record that has cells. */
export const MAX_ATTRIBUTES = 128;

/** As many as a record has at most. */
const MAX_CELLS = HEADER + MAX_ATTRIBUTES * ATTRIBUTE_CELLS;
/** The first cells are those of the record that is read, the next ones of one that is read again meanwhile. */
export const SECOND_RECORD = MAX_CELLS;
/** Behind them have those of items that wait as much room as the items have. */
const FIRST_WAITING = 2 * MAX_CELLS;
const numbers = new Int32Array(FIRST_WAITING + (REGION.scratch - REGION.items) / BYTES_A_CELL);
/** Where the cells of the record begin that is looked at. */
let record = 0;

/** From now on `cell` and `setCell` are about the record whose cells begin there. */
export function pointAt(at: number): void {
  record = at;
}

export function cell(at: number): number {
  return numbers[record + at] as number;
}

export function setCell(at: number, value: number): void {
  numbers[record + at] = value;
}

/** How many bytes of items the cells of the record that is looked at take the room of. */
export function waitingBytes(): number {
  return BYTES_A_CELL * (HEADER + cell(Cell.attributeCount) * ATTRIBUTE_CELLS);
}

/** Where the cells of an item that waits stand: see `pointAt`. @param itemStart its place, a multiple of four */
export function cellsOfWaiting(itemStart: number): number {
  return FIRST_WAITING + (itemStart - REGION.items) / BYTES_A_CELL;
}

/** Keeps the cells of the record that is looked at, whose item waits. */
export function keepCells(itemStart: number): void {
  const to = cellsOfWaiting(itemStart);
  numbers.copyWithin(to, record, record + HEADER + cell(Cell.attributeCount) * ATTRIBUTE_CELLS);
}

/** Makes the header all zeros. */
export function clearHeader(): void {
  numbers.fill(0, record, record + HEADER);
}
