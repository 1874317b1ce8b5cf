import { ShownText } from './shown-texts';
import { bytesField, keyedText, keyedTextSize, varint, varintSize } from './wire';

// What a failed node's span has beside the others: `SpanOutcomes.ofFailedNode` for one of which only its line has to be asked.

const EVENT_TAG: u8 = 0x5a;
const EVENT_ATTRIBUTE: u8 = 0x1a;
const SPAN_ATTRIBUTE: u8 = 0x4a;

/** The beginnings of KeyValues, up to the length of the value: `0a <length> name 12`. */
const ERROR_TYPE: usize = keyOf('error.type');
const EXCEPTION_TYPE: usize = keyOf('exception.type');
const EXCEPTION_MESSAGE: usize = keyOf('exception.message');
const ERROR_TYPE_LENGTH: u32 = 'error.type'.length + 3;
const EXCEPTION_TYPE_LENGTH: u32 = 'exception.type'.length + 3;
const EXCEPTION_MESSAGE_LENGTH: u32 = 'exception.message'.length + 3;
/** `exception` and its tag and length, between the event's time and its attributes. */
const NAME: usize = memory.data<u8>([0x12, 9, 0x65, 0x78, 0x63, 0x65, 0x70, 0x74, 0x69, 0x6f, 0x6e]);
const NAME_LENGTH: u32 = 11;
const NODE_ERROR: usize = memory.data<u8>([0x6e, 0x6f, 0x64, 0x65, 0x5f, 0x65, 0x72, 0x72, 0x6f, 0x72, 0, 0, 0, 0, 0, 0]);
const NODE_ERROR_LENGTH: u32 = 10;

/** How the failure in hand is told: its type, its message, and the message in a line. */
let type: usize = NODE_ERROR;
let typeLength: u32 = NODE_ERROR_LENGTH;
let message: usize = 0;
let messageLength: u32 = 0;
let headline: usize = 0;
let headlineLength: u32 = 0;

/** Sets what the span in hand tells. `shownType` is null for a node that has no type of error. */
export function setFailure(shownType: ShownText | null, shownMessage: ShownText, shownHeadline: ShownText): void {
  type = shownType == null ? NODE_ERROR : shownType.shown;
  typeLength = shownType == null ? NODE_ERROR_LENGTH : shownType.shownLength;
  message = shownMessage.shown;
  messageLength = shownMessage.shownLength;
  headline = shownHeadline.shown;
  headlineLength = shownHeadline.shownLength;
}

/** The attribute `error.type`. */
export function writeErrorType(to: usize): usize {
  return keyedText(to, SPAN_ATTRIBUTE, ERROR_TYPE, ERROR_TYPE_LENGTH, type, typeLength);
}

/** The event `exception` at the span's end. */
export function writeException(to: usize, time: u64): usize {
  const typeSize = keyedTextSize(EXCEPTION_TYPE_LENGTH, typeLength);
  const size = 9 + NAME_LENGTH + typeSize + keyedTextSize(EXCEPTION_MESSAGE_LENGTH, messageLength) + 2;
  store<u8>(to, EVENT_TAG);
  to = varint(to + 1, size);
  store<u8>(to, 0x09);
  store<u64>(to + 1, time);
  memory.copy(to + 9, NAME, NAME_LENGTH);
  to += 9 + NAME_LENGTH;
  to = keyedText(to, EVENT_ATTRIBUTE, EXCEPTION_TYPE, EXCEPTION_TYPE_LENGTH, type, typeLength);
  to = keyedText(to, EVENT_ATTRIBUTE, EXCEPTION_MESSAGE, EXCEPTION_MESSAGE_LENGTH, message, messageLength);
  store<u16>(to, 0x0020);
  return to + 2;
}

/** The status: Error, with a line of the message where there is any. */
export function writeErrorStatus(to: usize): usize {
  store<u8>(to, 0x7a);
  if (headlineLength == 0) to = varint(to + 1, 2);
  else {
    to = varint(to + 1, 1 + varintSize(headlineLength) + headlineLength + 2);
    to = bytesField(to, 0x12, headline, headlineLength);
  }
  store<u16>(to, 0x0218);
  return to + 2;
}

function keyOf(name: string): usize {
  const at = heap.alloc(name.length + 3 + 16);
  store<u8>(at, 0x0a);
  store<u8>(at + 1, <u8>name.length);
  for (let index = 0; index < name.length; index++) store<u8>(at + 2 + index, <u8>name.charCodeAt(index));
  store<u8>(at + 2 + name.length, 0x12);
  return at;
}
