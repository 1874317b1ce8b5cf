import { hex16 } from './digits';
import { TEXTS } from './memory-map';

// Fixed texts of a line, as bytes, each behind 16 bytes of room so that they can be copied 16 at a time.

let free: usize = TEXTS;

/** Writes ASCII text behind what was written before. */
function append(text: string): void {
  for (let index = 0; index < text.length; index++) store<u8>(free + index, <u8>text.charCodeAt(index));
  free += text.length;
}

/** Writes ASCII text, once, and returns where. */
function placed(text: string): usize {
  const at = free;
  append(text);
  free = (free + 31) & ~15;
  return at;
}

/** Writes what a line begins with up to the span's id, with room for the trace's. */
function placedHead(before: string): usize {
  const at = free;
  append(before);
  free += TRACE_ID_DIGITS;
  placed(SPAN_ID_KEY);
  return at;
}

const TRACE_ID_DIGITS = 32;
const SPAN_ID_KEY = '","span_id":"';
const START_BEFORE = '{"record_type":"SpanStart","trace_id":"';
const END_BEFORE = '{"record_type":"SpanEnd","trace_id":"';

/** The heads of both lines; they hold the id of the trace in hand. */
export const startHead = placedHead(START_BEFORE);
export const START_HEAD: u32 = 39 + 32 + 13;
export const endHead = placedHead(END_BEFORE);
export const END_HEAD: u32 = 37 + 32 + 13;

/** Puts the trace id that stands there into both. */
export function setTraceId(at: usize): void {
  hex16(startHead + START_BEFORE.length, at);
  hex16(endHead + END_BEFORE.length, at);
}

export const nameKey = placed('","span_name":');
export const NAME_KEY: u32 = 14;
export const noParent = placed(',"parent_span_id":null,"links":');
export const NO_PARENT: u32 = 31;
export const parent = placed(',"parent_span_id":"');
export const PARENT: u32 = 19;
export const links = placed('","links":');
export const LINKS: u32 = 10;
export const noLinks = placed('null');
export const NO_LINKS: u32 = 4;
export const startTime = placed(',"start_time_unix_nano":"');
export const START_TIME: u32 = 25;
export const endTime = placed('","end_time_unix_nano":"');
export const END_TIME: u32 = 24;
export const linkTrace = placed(',{"trace_id":"');
export const LINK_TRACE: u32 = 14;
export const linkSpan = placed('","span_id":"');
export const LINK_SPAN: u32 = 13;
export const linkEnd = placed('","attributes":{}}');
export const LINK_END: u32 = 18;
export const noStatus = placed('"status":null,');
export const NO_STATUS: u32 = 14;
export const statusMessage = placed('"status":{"message":');
export const STATUS_MESSAGE: u32 = 20;
export const statusCode = placed(',"code":');
export const STATUS_CODE: u32 = 8;
