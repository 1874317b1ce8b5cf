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
export const MAX_CELLS = HEADER + MAX_ATTRIBUTES * ATTRIBUTE_CELLS;
/** Behind the cells of the two records that are read have those of items that wait as much room as the items have. */
const FIRST_WAITING = 2 * MAX_CELLS;
/** The first cells are those of the record that is read, these of one that is read again meanwhile. */
export const SECOND_RECORD = FIRST_WAITING - MAX_CELLS;
const numbers = new Int32Array(FIRST_WAITING + (REGION.scratch - REGION.items) / BYTES_A_CELL);
/** Where the cells of the record begin that is looked at. */
let record = 0;

/** From now on `cell` and `setCell` are about the record whose cells begin there. @returns where those begin that were looked at before */
export function pointAt(at: number): number {
  const before = record;
  record = at;
  return before;
}

export function cell(at: number): number {
  return numbers[record + at] as number;
}

export function setCell(at: number, value: number): void {
  numbers[record + at] = value;
}

const HALVES = new DataView(new ArrayBuffer(8));

/** Unix nanoseconds, which two cells of the record that is looked at hold as halves. @param low the first one */
export function nanosAt(low: number): bigint {
  HALVES.setInt32(0, cell(low + 1));
  HALVES.setInt32(4, cell(low));
  return HALVES.getBigUint64(0);
}

/** How many cells the record that is looked at has. */
export function cellCount(): number {
  return HEADER + cell(Cell.attributeCount) * ATTRIBUTE_CELLS;
}

/** How many bytes of items the cells of the record that is looked at take the room of. */
export function waitingBytes(): number {
  return BYTES_A_CELL * cellCount();
}

/** Where the cells begin that stand beside a place of the items' room: see `pointAt`. @param place a multiple of four */
export function cellsBeside(place: number): number {
  return FIRST_WAITING + (place - REGION.items) / BYTES_A_CELL;
}

/** Keeps the cells of the record that is looked at beside its item. */
export function keepCells(itemStart: number): void {
  numbers.copyWithin(cellsBeside(itemStart), record, record + cellCount());
}

/** The first cell of an attribute. */
export function attributeAt(index: number): number {
  return HEADER + index * ATTRIBUTE_CELLS;
}

/** Whether an attribute of the record that is looked at came as a text. */
export function isText(index: number): boolean {
  return cell(attributeAt(index) + Attribute.kind) === Value.text;
}

/** Makes the header all zeros. */
export function clearHeader(): void {
  for (let at = record; at < record + HEADER; at++) numbers[at] = 0;
}
