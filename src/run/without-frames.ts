/** Frames of a Rust backtrace, from the first on: `   0: <unknown>`, `  18: start_thread`, `             at ./nptl/…`. */
const FRAMES = /(?:^|\n) *0: (?:<unknown>[^\n]*|[^\n]*(?=\n +(?:1: |at )))(?:\n +(?:\d+: |at )[^\n]*)*/g;

/** An error message without the frames of the engine's own code that stand behind it, which tell nobody anything. */
export function withoutFrames(message: string): string {
  return message.includes('0: ') ? message.replaceAll(FRAMES, '') : message;
}
