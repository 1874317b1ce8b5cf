import type { ShownText } from '../redaction/prose-cache.js';

/** Numbers of a span: see `WRITTEN_NUMBERS` in `kernel/assembly/lines/span-writer.ts`. */
export const WRITTEN_NUMBERS = 4;

/** How many open texts a span has is below this bit of its last number; above is whether it is that of a failed node. */
export const FAILED_BIT = 0x10000;

/** The spans of some lines of a block, as the kernel wrote them. */
export interface WrittenSpans {
  /** The lines: index of the first, and how many. */
  readonly firstLine: number;
  readonly lineCount: number;
  /** The spans, in OTLP's protobuf. */
  readonly bytes: Buffer;
  /** `WRITTEN_NUMBERS` for each line. */
  readonly numbers: Int32Array;
  /** Numbers of the texts that may be shown otherwise one day, and what each was when the spans were written. */
  readonly openTexts: Int32Array;
  readonly texts: readonly ShownText[];
}
