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
  /** `0a <length> name 12`: a KeyValue of OTLP up to the length of its value. */
  key: usize;
  keyLength: u32;
  /** One of the treatments below. */
  treatment: u32;
}

/** What becomes of an attribute's text: it is copied, it is the digits of a number, a `?` stands in its place, or JavaScript says. */
export const KEEP: u32 = 0;
export const INT64: u32 = 1;
export const DENY: u32 = 2;
/** Such a span is JavaScript's. */
export const NOT_HERE: u32 = 3;
/** From here on JavaScript is asked once for each text: by these numbers. */
export const FIRST_SHOWN: u32 = 4;
/** As a message. */
export const MESSAGE: u32 = 1;
/** As the type of a failed node's error. */
export const NODE_ERROR_TYPE: u32 = 2;
/** As the line that says what a message says. */
export const HEADLINE: u32 = 3;

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
  /** The attribute `event_type` as OTLP has it. */
  typeAttribute: usize;
  typeAttributeLength: u32;
  /** The span's kind as OTLP numbers it; 0 for spans that are JavaScript's. */
  spanKind: u32;
  /** The first of the outcomes that its spans may have; null where they need none. */
  outcome: Outcome | null;
}

/** A value of `node_outcome`, and what it adds to the span. */
@unmanaged
export class Outcome {
  next: Outcome | null;
  value: usize;
  valueLength: u32;
  /** An attribute as OTLP has it. */
  verdict: usize;
  verdictLength: u32;
  /** Not 0 where the node failed. */
  isFailure: u32;
}
