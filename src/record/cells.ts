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
} as const;

export const HEADER = 18;

/** Numbers of an attribute. */
export const Attribute = {
  valueStart: 0,
  valueEnd: 1,
  /** One of `Value`. */
  kind: 2,
} as const;

export const ATTRIBUTE_CELLS = 3;

export const Value = { text: 0, bool: 1, integer: 2 } as const;

/** Attributes of a record that has cells. */
export const MAX_ATTRIBUTES = 128;

const numbers = new Int32Array(HEADER + MAX_ATTRIBUTES * ATTRIBUTE_CELLS);

export function cell(at: number): number {
  return numbers[at] as number;
}

export function setCell(at: number, value: number): void {
  numbers[at] = value;
}

/** Makes the header all zeros. */
export function clearHeader(): void {
  numbers.fill(0, 0, HEADER);
}
