/** How a command ended. */
export type CommandEnding =
  /** It exited by itself. */
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** A signal killed it, for example `SIGKILL`. */
  | { readonly kind: 'killed'; readonly signal: string }
  /** It could not be started (not found, not executable); why, in words. */
  | { readonly kind: 'notStarted'; readonly reason: string }
  /**
   * It was one of several engine commands inside a command that went on after it: what it did tells how it ended, no exit
   * code of its own does.
   */
  | { readonly kind: 'within' }
  /** Nobody knows: whoever ran it went away and never said. */
  | { readonly kind: 'unknown' };
