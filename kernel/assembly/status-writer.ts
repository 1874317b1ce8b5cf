import { copy } from './bytes';
import { short } from './digits';
import { jsonText } from './json-text';
import * as span from './span-reader';
import * as texts from './texts';

/** Writes `"status":…,`; 0 where the message is not UTF-8. */
export function writeStatus(to: usize): usize {
  if (span.status == 0 && span.messageLength == 0) return copy(to, texts.noStatus, texts.NO_STATUS);
  to = copy(to, texts.statusMessage, texts.STATUS_MESSAGE);
  if (span.messageLength == 0) {
    store<u32>(to, 0x6c6c756e); // null
    to += 4;
  } else {
    to = jsonText(to, span.message, span.messageLength);
    if (to == 0) return 0;
  }
  to = short(copy(to, texts.statusCode, texts.STATUS_CODE), span.status);
  store<u16>(to, 0x2c7d);
  return to + 2;
}
