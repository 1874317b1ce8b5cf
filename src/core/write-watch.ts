import type { Clock, Timer } from './clock.js';
import type { Health, HealthState } from './health.js';

/** How often a folder that could not be written is tried, in milliseconds. */
const PROBE_MS = 2_000;

/** What the watch works with. */
export interface WriteWatchDeps {
  /** Writes something small to the data folder and removes it. @throws Error when that fails. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  /** Gets the watch's own check. */
  readonly health: Health;
}

/**
 * Makes the process unready while its data folder cannot be written. Load balancers send nothing to a process that is not ready,
 * so no write would show the recovery: the folder is tested regularly until it can be written.
 */
export class WriteWatch {
  private failure: string | undefined;
  private timer: Timer | undefined;

  constructor(private readonly deps: WriteWatchDeps) {
    deps.health.register('data folder', () => this.check());
  }

  /** Records could not be written. @param reason one sentence on why. */
  onFailed(reason: string): void {
    this.failure = reason;
    this.timer ??= this.deps.clock.after(PROBE_MS, () => void this.probe());
  }

  /** Records were written. */
  onWritten(): void {
    this.failure = undefined;
    this.stop();
  }

  /** Ends the trying. */
  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private async probe(): Promise<void> {
    const isWritable = await this.deps.probe().then(
      () => true,
      () => false,
    );
    // Records were written meanwhile.
    if (this.timer === undefined) return;
    this.timer = undefined;
    if (isWritable) this.onWritten();
    else if (this.failure !== undefined) this.onFailed(this.failure);
  }

  private check(): HealthState {
    if (this.failure === undefined) return { ready: true };
    return { ready: false, reason: `${this.failure}; it is taken up again as soon as it can be written` };
  }
}
