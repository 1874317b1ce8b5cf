// What JavaScript writes into the kernel's memory, as unmanaged classes: their properties in this order, 4 bytes each.

/** A value that came, and its JSON. The text stands behind it, the JSON at `json`. */
@unmanaged
export class KnownText {
  next: KnownText | null;
  textLength: u32;
  json: usize;
  jsonLength: u32;
}

/** How one attribute of one event type is written. */
@unmanaged
export class Field {
  /** The bytes of an attribute's message up to its value: key with tag and length, tag of the value. */
  head: usize;
  headLength: u32;
  /** `,"name":` */
  quoted: usize;
  quotedLength: u32;
  /** One of the kinds below. */
  kind: u32;
  /** One of the starts below. */
  start: u32;
  /** The constant of a start, as JSON. */
  startJson: usize;
  startJsonLength: u32;
  /** The cell for where its value begins; 0 for none, `SPECIAL` where it makes the span special. */
  cell: u32;
  /** First of the values that are known, for an enum or nested JSON. */
  known: KnownText | null;
}

export const TEXT: u32 = 0;
/** Only known values. */
export const ENUM: u32 = 1;
/** Text, unless it begins as JSON does: then only known values. */
export const NESTED: u32 = 2;
/** Text; integers are quoted. */
export const INT64: u32 = 3;

/** The start has it as the end does. */
export const SAME: u32 = 0;
/** The start lacks it. */
export const ABSENT: u32 = 1;
/** The start has a constant instead. */
export const CONSTANT: u32 = 2;
/** The start has it only if it is the constant. */
export const IF_CONSTANT: u32 = 3;

export const SPECIAL: u32 = 0xff;

/** A step through the attributes in the order in which they come. */
@unmanaged
export class Step {
  /** The attribute that leads here; none at a type's first step. */
  field: Field;
  /** The first of the steps that may follow, and the next of those that may stand instead of this one. */
  child: Step | null;
  sibling: Step | null;
  /** What to do if the attributes end here; none for attributes that never ended here. */
  layout: Layout | null;
}

/** How a span with certain attributes is written. */
@unmanaged
export class Layout {
  /** A byte for each attribute: its index, in the order in which they are written. */
  order: usize;
  count: u32;
  /** What its lines take at most, but for the values' and the name's bytes. */
  fixedBytes: u32;
  /** `","severity_number":…,"severity_text":"…","event_type":"…","attributes":` */
  tail: usize;
  tailLength: u32;
  /** Of the tail, what comes behind the status. */
  typeLength: u32;
  /** The tail if attribute `decider` has this text. */
  decider: i32;
  deciderText: usize;
  deciderLength: u32;
  otherTail: usize;
  otherTailLength: u32;
}

/** An event type that the beginning of a name tells. */
@unmanaged
export class EventType {
  next: EventType | null;
  beginning: usize;
  beginningLength: u32;
  /** Its index in the page in hand; -1 where the page has none of it yet. */
  index: i32;
  first: Step | null;
}

/** First of the event types. */
export let eventTypes: usize = 0;

export function setEventTypes(first: usize): void {
  eventTypes = first;
}
