// What JavaScript writes into the kernel's memory, as unmanaged classes: their properties in this order, 4 bytes each.

/** One attribute of one event type. */
@unmanaged
export class Plan {
  /** The attribute that followed this one in the last start, and in the last end. */
  nextInStart: Plan | null;
  nextInEnd: Plan | null;
  /** Another attribute of the same event type. */
  sibling: Plan | null;
  /** `"name":` */
  quoted: usize;
  quotedLength: u32;
  /** What its first cell says, but for the kind of the value. */
  cell: u32;
  /** The bit of its role; 0 for none. */
  role: u32;
  /** 0; `NAME` if it teaches names, `ADAPTER` if it tells the database. */
  teaches: u32;
  /** Not 0 if a text of it is looked at before the line is done with, so that one with escapes is left to JavaScript. */
  isReadAtOnce: u32;
  /** Number of the line that had it last. */
  lineNumber: u32;
  /** The name that it taught last, for as long as `generation` is that of the kernel. */
  taught: usize;
  taughtLength: u32;
  generation: u32;
}

export const NAME: u32 = 1;
export const ADAPTER: u32 = 2;

/** An event type; it begins as a `Plan` does, for what stands before the first attribute. */
@unmanaged
export class EventType {
  nextInStart: Plan | null;
  nextInEnd: Plan | null;
  next: EventType | null;
  /** `<event type>","attributes":{` */
  tail: usize;
  tailLength: u32;
  index: u32;
  first: Plan | null;
}
