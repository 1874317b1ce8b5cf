// Where things stand in the memory of the kernel for lines, which never grows. Regions that are read or written 16 bytes
// at a time have as many bytes behind them that belong to nobody.

/** Fixed texts; see `literals.ts`. */
export const LITERALS: usize = 0x10000;
/** 32 digits: the trace id of the run in hand. */
export const TRACE_ID: u32 = 0x11000;
/** Names of the line in hand that the run was not taught yet: where they begin, how long they are. */
export const PENDING: u32 = 0x12000;
/** What JavaScript taught: event types and their attributes. */
export const TEMPLATES: u32 = 0x20000;
export const TEMPLATES_END: u32 = 0xa0000;
/** Seven numbers for each line that was read, see `index.ts`. */
export const LINES: u32 = 0xa0000;
export const LINES_END: u32 = 0xb0000;
/** The cells of attributes that teach names. */
export const NAMES: u32 = 0xb0000;
export const NAMES_END: u32 = 0xc0000;
/** The numbers of lines: `CELL` of src/exporter/lines/line-cells.ts, 4 bytes each. */
export const CELLS: u32 = 0xc0000;
export const CELLS_END: u32 = 0xf0000;
/** Lines, the last of them with its line break. */
export const CHUNK: u32 = 0xf0000;
export const CHUNK_END: u32 = 0x130000;
/** Where the plan of each attribute stands, by its index. */
export const PLANS: u32 = 0x141000;
export const MAX_PLANS: u32 = 0x1000;
/** Where each event type stands. */
export const EVENT_PLANS: u32 = 0x145000;
/** Lines that were held and are to be sent, their cells, and where each begins: see `span-writer.ts`. */
export const HELD: u32 = 0x150000;
export const HELD_CELLS: u32 = 0x171000;
export const HELD_LINES: u32 = 0x17d000;
/** The spans that were made of them, where each stands, and the numbers of texts in it that may be shown otherwise one day. */
export const SPANS: u32 = 0x180000;
export const SPANS_END: u32 = 0x1b0000;
export const WRITTEN: u32 = 0x1b1000;
export const OPEN_TEXTS: u32 = 0x1b6000;
export const OPEN_TEXTS_END: u32 = 0x1bf000;
/** A text that JavaScript brings, as it is shown. */
export const SHOWN_TEXT: u32 = 0x1bf000;
/** Texts that runs were taught: places by their hash, 16 bytes each, and the texts; and for each run which of them. */
export const SEEN_SLOTS: u32 = 0x1c0000;
export const SLOT_COUNT: u32 = 0x10000;
export const SEEN_TEXTS: u32 = 0x2c0000;
export const SEEN_TEXTS_END: u32 = 0x440000;
export const RUN_BITS: u32 = 0x440000;
export const RUN_COUNT: u32 = 63;
/**
 * How texts are shown: places by their hash, 32 bytes each, and the texts. A run of 2,000 models has 2,600 of them, so a dozen
 * large runs have room at a time: with less, each would push out what the others are about to ask for again.
 */
export const SHOWN_SLOTS: u32 = 0x4c0000;
export const SHOWN_SLOT_COUNT: u32 = 0x10000;
export const SHOWN_TEXTS: u32 = 0x6c0000;
export const SHOWN_TEXTS_END: u32 = 0xe3ff00;
