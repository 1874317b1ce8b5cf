import { constants } from 'node:os';
import type { CommandExit } from './exit-code.js';
import type { ProcessContext } from './process-context.js';

/** A signal so soon after the first is the same one, in milliseconds. */
const SAME_SIGNAL_MS = 500;

/**
 * Standard input of a pipe. It is read to its end whatever signals come: Ctrl+C reaches the engine, too, and what that still
 * writes is wanted. A second SIGTERM or SIGHUP ends it at once.
 */
export class PipeInput {
  /** Resolves with how the process is to end when it is not to read on. */
  readonly cut: Promise<CommandExit>;
  private isCut = false;

  /** @param onFault is told a fault of the program that nobody caught; lines are passed on all the same. */
  constructor(
    private readonly context: ProcessContext,
    onFault: (error: unknown) => void,
  ) {
    const { clock, stdin } = context;
    let firstMs: number | undefined;
    this.cut = new Promise((resolve) => {
      const onSignal = (signal: NodeJS.Signals): void => {
        const nowMs = clock.monotonicMs();
        if (signal === 'SIGINT') return;
        firstMs ??= nowMs;
        if (nowMs - firstMs <= SAME_SIGNAL_MS) return;
        this.isCut = true;
        stdin.destroy();
        resolve({ exitCode: 128 + constants.signals[signal], signal });
      };
      context.takeOver({ signals: ['SIGINT', 'SIGTERM', 'SIGHUP'], onSignal, onFault });
    });
  }

  /** What comes in; may be asked again for the rest after who read it has failed. */
  async *bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.context.stdin.iterator({ destroyOnReturn: false });
    } catch (error) {
      if (!this.isCut) throw error;
    }
  }
}
