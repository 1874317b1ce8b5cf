/**
 * A span's line as numbers: where its parts stand in the line, counted from its first byte, and its ids and times. One
 * array of these cells for each line, in this order; then two cells for each link and three for each attribute.
 */
export const CELL = {
  /** The two halves of an id, as signed 32-bit integers; both 0 for no parent. */
  spanHigh: 0,
  spanLow: 1,
  parentHigh: 2,
  parentLow: 3,
  /** Seconds as 32-bit integers without a sign: lines from 2106 on are read in the general way. */
  startSeconds: 4,
  startNanos: 5,
  endSeconds: 6,
  endNanos: 7,
  nameStart: 8,
  nameEnd: 9,
  /** 0 for no status; the message is empty where there is none. */
  statusCode: 10,
  messageStart: 11,
  messageEnd: 12,
  /** Index of its `EventPlan`. */
  event: 13,
  linkCount: 14,
  attributeCount: 15,
  /** One bit for each role that an attribute of the line has. */
  roles: 16,
  /** Of each link: where its trace id and its span id stand, in hexadecimal. */
  links: 17,
} as const;

/** Cells of an attribute: index of its `AttributePlan` and kind of its value, begin and end of the value. */
export const ATTRIBUTE_CELLS = 3;
export const LINK_CELLS = 2;

/** Links and attributes that a line may have; one with more is read in the general way. */
export const MAX_LINKS = 16;
export const MAX_ATTRIBUTES = 128;
/** Cells of a line at most. */
export const MAX_CELLS = CELL.links + MAX_LINKS * LINK_CELLS + MAX_ATTRIBUTES * ATTRIBUTE_CELLS;

/** Kinds of values. A plain text is ASCII without escapes; its begin and end are those of its characters. */
export const PLAIN_TEXT = 0;
/** A text that has to be parsed, with its quotes. */
export const OTHER_TEXT = 1;
/** A whole number of at most 15 digits. */
export const INTEGER = 2;
export const TRUE = 3;
export const FALSE = 4;
export const NULL = 5;
/** Any other number, a list, an object. */
export const OTHER = 6;

/** Where an attribute's first cell has the number of its plan, and of its role plus one; below is the kind of its value. */
export const PLAN_SHIFT = 8;
export const ROLE_SHIFT = 3;
export const ROLE_MASK = 31;
export const KIND_MASK = 7;

/** The first cell of an attribute, but for the kind of its value. @param role -1 for none */
export function planAndRole(plan: number, role: number): number {
  return (plan << PLAN_SHIFT) | ((role + 1) << ROLE_SHIFT);
}
