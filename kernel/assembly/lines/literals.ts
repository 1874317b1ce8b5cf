import { isSame } from '../bytes';
import { LITERALS } from './memory-map';

let free: usize = LITERALS;

/** Fixed text, all ASCII and without a line break, which ends every line: so it is never found beyond a line. */
@unmanaged
export class Literal {
  at: usize;
  length: u32;
}

function placed(text: string): usize {
  const at = free;
  store<u32>(at, <u32>at + 16);
  store<u32>(at + 4, text.length);
  for (let index = 0; index < text.length; index++) store<u8>(at + 16 + index, <u8>text.charCodeAt(index));
  free = (at + 16 + text.length + 31) & ~15;
  return at;
}

/** Whether the text stands there. */
@inline
export function isAt(literal: usize, at: usize): bool {
  return isSame(load<u32>(literal), at, load<u32>(literal + 4));
}

@inline
export function lengthOf(literal: usize): u32 {
  return load<u32>(literal + 4);
}

export const RECORD_START = placed('{"record_type":"SpanStart","trace_id":"');
export const RECORD_END = placed('{"record_type":"SpanEnd","trace_id":"');
export const SPAN_ID = placed('","span_id":"');
export const SPAN_NAME = placed('","span_name":"');
export const NO_PARENT = placed('","parent_span_id":null,"links":');
export const PARENT = placed('","parent_span_id":"');
export const LINKS = placed('","links":');
export const NO_LINKS = placed('null,"start_time_unix_nano":"');
export const LINK = placed('{"trace_id":"');
export const LINK_END = placed('","attributes":{}}');
export const LAST_LINK = placed('],"start_time_unix_nano":"');
export const END_TIME = placed('","end_time_unix_nano":"');
export const SEVERITY_NUMBER = placed('","severity_number":');
export const SEVERITY_TEXT = placed(',"severity_text":"');
export const EVENT_TYPE = placed('","event_type":"');
export const STATUS = placed('","status":');
export const NO_STATUS = placed('null,"event_type":"');
export const NO_MESSAGE = placed('{"message":null,"code":');
export const MESSAGE = placed('{"message":"');
export const STATUS_CODE = placed('","code":');
export const STATUS_END = placed('},"event_type":"');
export const TRUE = placed('true');
export const FALSE = placed('false');
export const NULL = placed('null');
