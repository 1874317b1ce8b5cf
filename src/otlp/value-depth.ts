import { OtlpDecodeError } from './otlp-codec.js';

/**
 * How many levels of lists and maps an AnyValue may have, in both encodings. Protobuf implementations stop at 100
 * nested messages (protobufjs, C++, Java and Python by default); a map takes three of them, which leaves 32 levels.
 */
export const MAX_VALUE_LEVELS = 32;

/** @throws OtlpDecodeError when an AnyValue lies deeper than {@link MAX_VALUE_LEVELS}; the outermost one is at level 1. */
export function checkValueLevel(level: number): void {
  if (level > MAX_VALUE_LEVELS) {
    throw new OtlpDecodeError(`An attribute value is nested deeper than ${MAX_VALUE_LEVELS} levels.`);
  }
}
