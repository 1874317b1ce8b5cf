// Where things stand in the kernel's memory, which never grows. Regions that are read or written 16 bytes at a time have
// as many bytes behind them that belong to nobody.

/** Fixed texts; see `texts.ts`. */
export const TEXTS: usize = 0x10000;
/** What was read of the span in hand; see `span-reader.ts`. */
export const SCRATCH: usize = 0x11000;
/** What JavaScript taught: event types, fields, layouts. */
export const TEMPLATES: u32 = 0x20000;
export const TEMPLATES_END: u32 = 0xa0000;
/** Numbers of the spans that were written; 24 of 4 bytes for each. */
export const CELLS: u32 = 0xa0000;
export const CELLS_PER_SPAN: u32 = 24;
/** Spans of one run at most. */
export const MAX_SPANS: u32 = 512;
/** A stretch of the request. */
export const BODY: u32 = 0xb0000;
export const BODY_END: u32 = 0xf0000;
/** The lines that were written. */
export const OUT: u32 = 0x100000;
export const OUT_END: u32 = 0x180000;
