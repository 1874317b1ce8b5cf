/** How a command ended. */
export type CommandEnding =
  /** It exited by itself; `stoppedBy` names the signal, for example `SIGINT`, by which it was asked to. */
  | { readonly kind: 'exited'; readonly exitCode: number; readonly stoppedBy?: string }
  /** A signal killed it, for example `SIGKILL`. */
  | { readonly kind: 'killed'; readonly signal: string }
  /** It could not be started (not found, not executable); why, in words. */
  | { readonly kind: 'notStarted'; readonly reason: string }
  /**
   * It was one of several engine commands inside a command that continued after it: its records show how it ended, there is no exit
   * code for it.
   */
  | { readonly kind: 'within' }
  /** Unknown: the program that ran it disappeared without a report. */
  | { readonly kind: 'unknown' };
