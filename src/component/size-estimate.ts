import type { Clock } from './clock.js';
import type { DataFolder } from './data-folder.js';

/** A folder is gone through again after this long, in milliseconds, or this many times as long as it took. */
const REFRESH_MS = 60_000;
const REFRESH_FACTOR = 100;
/** The same while it is over its limit, so that what was removed is noticed soon. */
const URGENT_REFRESH_MS = 2_000;
const URGENT_REFRESH_FACTOR = 10;

/** How much a folder holds: counted in the background now and then, and what was written since added to it. */
export class SizeEstimate {
  private countedBytes: number | undefined;
  private writtenBytes = 0;
  private dueAtMs = Number.NEGATIVE_INFINITY;
  private urgentAtMs = Number.NEGATIVE_INFINITY;
  private isCounting = false;
  private readonly stopped = new AbortController();

  constructor(
    private readonly folder: DataFolder,
    private readonly clock: Clock,
  ) {}

  /** In bytes; `undefined` until it was counted for the first time. */
  get bytes(): number | undefined {
    return this.countedBytes === undefined ? undefined : this.countedBytes + this.writtenBytes;
  }

  /** Something was, or is about to be, written. */
  add(bytes: number): void {
    this.writtenBytes += bytes;
  }

  /** Counts again in the background when that is due. @param isUrgent sooner than usual. */
  refresh(isUrgent: boolean): void {
    // An idle bridge does not go through its runs again and again.
    if (this.isCounting || (!isUrgent && this.countedBytes !== undefined && this.writtenBytes === 0)) return;
    if (this.clock.monotonicMs() >= (isUrgent ? this.urgentAtMs : this.dueAtMs)) void this.count();
  }

  /** Ends a count that is under way. */
  stop(): void {
    this.stopped.abort();
  }

  private async count(): Promise<void> {
    this.isCounting = true;
    const beganAtMs = this.clock.monotonicMs();
    const alreadyBytes = this.writtenBytes;
    const bytes = await this.folder.readSize(this.stopped.signal);
    this.isCounting = false;
    if (this.stopped.signal.aborted) return;
    this.countedBytes = bytes;
    // What was written meanwhile may have been counted, too: rather too much than too little.
    this.writtenBytes -= alreadyBytes;
    const endedAtMs = this.clock.monotonicMs();
    const tookMs = endedAtMs - beganAtMs;
    this.dueAtMs = endedAtMs + Math.max(REFRESH_MS, REFRESH_FACTOR * tookMs);
    this.urgentAtMs = endedAtMs + Math.max(URGENT_REFRESH_MS, URGENT_REFRESH_FACTOR * tookMs);
  }
}
