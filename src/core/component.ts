/**
 * A part of the program with a lifecycle. The composition root starts components destinations first and shuts
 * them down sources first, so that nothing is sent to a stopped component.
 */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes what was accepted. When `deadline` aborts, returns as soon as it safely can; what is left stays on disk. */
  shutdown(deadline: AbortSignal): Promise<void>;
}
