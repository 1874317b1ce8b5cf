import type { DecodedRequest } from '../../src/decode/request-decoder.js';
import type { LargeBodyDecoder } from '../../src/decode/wire/large-body-decoder.js';

/** Decodes a body without giving anybody else a turn. */
export function decodeAtOnce(decoder: LargeBodyDecoder, body: Uint8Array): DecodedRequest {
  const steps = decoder.decodeInSteps(body);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}
