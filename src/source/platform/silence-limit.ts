import type { Clock, Timer } from '../../component/clock.js';

/** Gives up a request that is silent for too long, or takes too long altogether; also when somebody else stops it. */
export class SilenceLimit {
  /** Why it was given up, in words; `undefined` while it was not, or when somebody else stopped it. */
  reason: string | undefined;
  private readonly controller = new AbortController();
  private silence: Timer | undefined;
  private readonly whole: Timer;
  private readonly onStop = () => this.controller.abort(this.stop.reason);

  constructor(
    private readonly clock: Clock,
    private readonly silenceMs: number,
    wholeMs: number,
    private readonly stop: AbortSignal,
  ) {
    this.whole = clock.after(wholeMs, () => this.giveUp(`not done within ${wholeMs / 1_000} s`));
    // Not AbortSignal.any: it would stay with a signal that lives as long as the program.
    stop.addEventListener('abort', this.onStop, { once: true });
    if (stop.aborted) this.onStop();
    this.note();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Something came. */
  note(): void {
    this.silence?.cancel();
    this.silence = this.clock.after(this.silenceMs, () => this.giveUp(`silent for ${this.silenceMs / 1_000} s`));
  }

  /** The request is over. */
  end(): void {
    this.silence?.cancel();
    this.whole.cancel();
    this.stop.removeEventListener('abort', this.onStop);
  }

  private giveUp(reason: string): void {
    this.reason = reason;
    this.controller.abort(new Error(reason));
  }
}
