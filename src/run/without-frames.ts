/** Frames of a Rust backtrace, from the first on: `   0: <unknown>`, `  18: start_thread`, `             at ./nptl/…`. */
const FRAMES = /(?:^|\n) *0: (?:<unknown>[^\n]*|[^\n]*(?=\n +(?:1: |at )))(?:\n +(?:\d+: |at )[^\n]*)*/g;

/** An error message without the stack frames of the engine's own code, which help nobody. */
export function withoutFrames(message: string): string {
  return message.includes('0: ') ? message.replaceAll(FRAMES, '') : message;
}
