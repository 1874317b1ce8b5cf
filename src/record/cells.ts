import { REGION } from './arena.js';

/** The cells of a record: a header of `HEADER` integers, then `ATTRIBUTE_CELLS` for each attribute. Offsets are those of the arena. The decoder fills them once, and all later stages read them. */
export const Cell = {
  /** Number of the record's layout, which knows the event type and the names of the attributes. */
  layout: 0,
  /** Offset of the 16 bytes of the trace id. */
  traceId: 1,
  /** The halves of the span's id, or of the span that a log record belongs to. Two zeros stand for none, here and below. */
  idHigh: 2,
  idLow: 3,
  parentHigh: 4,
  parentLow: 5,
  /** The name of a span; the body of a log record. */
  textStart: 6,
  textEnd: 7,
  /** Unix nanoseconds in halves. A log record has its time in both pairs. */
  startLow: 8,
  startHigh: 9,
  endLow: 10,
  endHigh: 11,
  /** The code of a span's status; the severity number of a log record. */
  code: 12,
  /** The message of a status; the text of a severity. */
  messageStart: 13,
  messageEnd: 14,
  /** The halves of the id of the linked span, which is in the same trace. */
  linkHigh: 15,
  linkLow: 16,
  attributeCount: 17,
  /** The range of the whole item on the wire, without its tag and length. */
  itemStart: 18,
  itemEnd: 19,
} as const;

export const HEADER = 20;

/** The cells of an attribute. */
export const Attribute = {
  valueStart: 0,
  valueEnd: 1,
  /** One of `Value`. */
  kind: 2,
  /** Offset of its KeyValue on the wire, with tag and length. */
  start: 3,
  /** Number plus one of the remembered text that the value equals; 0 until it was looked up. */
  text: 4,
} as const;

export const ATTRIBUTE_CELLS = 5;

export const Value = { text: 0, bool: 1, integer: 2 } as const;

const BYTES_A_CELL = 4;
/** The most attributes of a record with cells. */
export const MAX_ATTRIBUTES = 128;

/** The most cells of a record. */
export const MAX_CELLS = HEADER + MAX_ATTRIBUTES * ATTRIBUTE_CELLS;
/** The first cell beside the item region. Before it are the cells of two records; behind it, each four bytes of the region have a cell. */
const FIRST_WAITING = 2 * MAX_CELLS;
/** The first cell of the second record, which is read while the first is still in use. */
export const SECOND_RECORD = FIRST_WAITING - MAX_CELLS;
const numbers = new Int32Array(FIRST_WAITING + (REGION.scratch - REGION.items) / BYTES_A_CELL);
/** The first cell of the current record. */
let record = 0;

/** Makes the record whose cells begin at `at` the current one, which `cell` and `setCell` access. @returns the first cell of the previous one */
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

/** Returns Unix nanoseconds that two cells of the current record have as halves. @param low the cell of the low half */
export function nanosAt(low: number): bigint {
  HALVES.setInt32(0, cell(low + 1));
  HALVES.setInt32(4, cell(low));
  return HALVES.getBigUint64(0);
}

/** Returns the number of cells of the current record. */
export function cellCount(): number {
  return HEADER + cell(Cell.attributeCount) * ATTRIBUTE_CELLS;
}

/** Returns the bytes that an item has to take at least in the item region, so that the current record's cells fit beside it. */
export function waitingBytes(): number {
  return BYTES_A_CELL * cellCount();
}

/** Returns the first cell beside an offset of the item region; see `pointAt`. @param offset a multiple of four */
export function cellsBeside(offset: number): number {
  return FIRST_WAITING + (offset - REGION.items) / BYTES_A_CELL;
}

/** Copies the cells of the current record to those beside its item. */
export function keepCells(itemStart: number): void {
  numbers.copyWithin(cellsBeside(itemStart), record, record + cellCount());
}

/** Returns the first cell of an attribute. */
export function attributeAt(index: number): number {
  return HEADER + index * ATTRIBUTE_CELLS;
}

/** Whether an attribute of the current record is a text. */
export function isText(index: number): boolean {
  return cell(attributeAt(index) + Attribute.kind) === Value.text;
}

/** Sets the header of the current record to zeros. */
export function clearHeader(): void {
  for (let at = record; at < record + HEADER; at++) numbers[at] = 0;
}
