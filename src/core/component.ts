/**
 * A part of the program with a life of its own. The composition root starts components destination-first and shuts
 * them down source-first, so that nothing is handed to a part that has already gone.
 */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes what was accepted. When `deadline` aborts, returns as soon as it safely can; what is left stays on disk. */
  shutdown(deadline: AbortSignal): Promise<void>;
}
