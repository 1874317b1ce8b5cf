/** How a command ended. */
export type CommandEnding =
  /** It exited by itself. */
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** A signal killed it, for example `SIGKILL`. */
  | { readonly kind: 'killed'; readonly signal: string }
  /** It could not be started (not found, not executable); why, in words. */
  | { readonly kind: 'notStarted'; readonly reason: string }
  /** Nobody knows: whoever ran it went away and never said. */
  | { readonly kind: 'unknown' };
