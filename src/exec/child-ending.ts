/** How a wrapped command ended, as its parent process sees it. */
export type ChildEnding =
  /** It exited by itself. */
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** A signal killed it. */
  | { readonly kind: 'killed'; readonly signal: NodeJS.Signals }
  /** It could not be started; `exitCode` as shells have it: 127 not found, 126 not executable. */
  | { readonly kind: 'notStarted'; readonly exitCode: 126 | 127; readonly reason: string };
