/** A timer that was asked for; cancelling it twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time, passed in so that tests decide when it passes. */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch; may jump in both directions. */
  nowUnixMs(): number;
  /** Milliseconds from an arbitrary start; never goes backwards. Intervals are measured with this one. */
  monotonicMs(): number;
  /** Calls `callback` once, `delayMs` from now; does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  nowUnixMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timeout = setTimeout(callback, delayMs);
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
};

/** Resolves after a time, or when the signal aborts; keeps the process alive meanwhile. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The clock's timers do not keep a process alive; this wait must.
    const alive = setInterval(() => {}, 2 ** 30);
    const timer = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
    function done(): void {
      clearInterval(alive);
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}

/** Resolves as soon as the signal is aborted, at once where it already is. Never rejects. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** One timer for the earliest of the times that were asked for; it fires once, and the later ones are asked for again. */
export class EarliestTimer {
  private timer: Timer | undefined;
  private due = Number.POSITIVE_INFINITY;

  /** @param callback is called when the time has come, after which none is set */
  constructor(
    private readonly clock: Clock,
    private readonly callback: () => void,
  ) {}

  /** When it fires, in monotonic milliseconds; infinity for never. */
  get dueMs(): number {
    return this.due;
  }

  /** Fires after so long, at least a millisecond, or sooner when that was asked for already. */
  within(delayMs: number): void {
    const waitMs = Math.max(1, delayMs);
    const dueMs = this.clock.monotonicMs() + waitMs;
    if (dueMs >= this.due) return;
    this.cancel();
    this.due = dueMs;
    this.timer = this.clock.after(waitMs, () => {
      this.cancel();
      this.callback();
    });
  }

  cancel(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.due = Number.POSITIVE_INFINITY;
  }
}

/** Runs an action again and again, each time a fixed delay after the last one ended, whether it failed or not. */
export class FixedDelayTask {
  private timer: Timer | undefined;
  private turn: Promise<void> = Promise.resolve();
  private isGoingOn = false;

  /** @param action the work @param onError receives its exceptions; the task continues */
  constructor(
    private readonly intervalMs: number,
    private readonly clock: Clock,
    private readonly action: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** From now on. @param firstMs before the first time, in milliseconds; the interval by default */
  start(firstMs = this.intervalMs): void {
    this.isGoingOn = true;
    this.later(firstMs);
  }

  /** Waits for a running turn; no other follows. */
  async stop(): Promise<void> {
    this.isGoingOn = false;
    this.timer?.cancel();
    await this.turn;
  }

  private later(delayMs: number): void {
    if (!this.isGoingOn) return;
    this.timer = this.clock.after(delayMs, () => {
      this.turn = this.action()
        .catch(this.onError)
        .then(() => this.later(this.intervalMs));
    });
  }
}

/** How long a `RetryPolicy` waits between attempts. */
export interface RetryPolicyOptions {
  /** Upper bound of the first wait, in milliseconds; doubles with each further attempt. Default 1,000. */
  readonly baseMs: number;
  /** Upper bound of every wait that the receiver did not ask for, in milliseconds. Default 60,000. */
  readonly maxMs: number;
  /** A receiver that asks for more is asked again after this time, in milliseconds. Default 600,000. */
  readonly maxRetryAfterMs: number;
}

/** The defaults: within a minute of its return, a receiver gets what it missed. */
export const DEFAULT_RETRY_POLICY: RetryPolicyOptions = { baseMs: 1_000, maxMs: 60_000, maxRetryAfterMs: 600_000 };

/** For a request that failed by chance while others succeed: what comes after it waits for it, so it is tried again soon. */
export const REQUEST_RETRY_POLICY: RetryPolicyOptions = { baseMs: 100, maxMs: 5_000, maxRetryAfterMs: 600_000 };

/** A wait is never shorter than this part of `baseMs`, so that random jitter cannot cause a busy loop. */
const SHORTEST_PART = 0.1;

/**
 * Exponential backoff with full jitter: senders that failed together do not come back together
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 */
export class RetryPolicy {
  /** @param random uniform in [0, 1); left out, each wait is as long as its upper bound */
  constructor(
    private readonly options: RetryPolicyOptions,
    private readonly random: () => number = () => 1,
  ) {}

  /**
   * How long to wait before the next attempt, in milliseconds.
   * @param failedAttempts attempts that failed in a row, from 1.
   * @param retryAfterMs requested by the receiver; respected up to `maxRetryAfterMs`, with jitter on top.
   */
  delayMs(failedAttempts: number, retryAfterMs: number | null): number {
    const { baseMs, maxMs, maxRetryAfterMs } = this.options;
    if (retryAfterMs !== null && retryAfterMs > 0) {
      return Math.round(Math.min(retryAfterMs, maxRetryAfterMs) + this.random() * baseMs);
    }
    const bound = Math.min(maxMs, baseMs * 2 ** Math.min(failedAttempts - 1, 30));
    return Math.round(Math.max(baseMs * SHORTEST_PART, bound * this.random()));
  }
}

/** When `retry` attempts something again. */
export interface RetryRules {
  readonly clock: Clock;
  /** Ends the waits; no attempt follows. */
  readonly signal: AbortSignal;
  /** Default: unlimited. */
  readonly maxAttempts?: number;
  /** A failure so long after the first attempt began is the last one, in milliseconds. Default: unlimited. */
  readonly maxElapsedMs?: number;
  /**
   * Decides after each failure.
   * @param failedAttempts attempts that failed so far, from 1
   * @returns how long to wait before the next attempt, in milliseconds; `null` if it would not help
   */
  readonly delayMs: (error: unknown, failedAttempts: number) => number | null;
}

/**
 * Attempts something until it succeeds, or another attempt would not help.
 * @throws what the last attempt threw; the reason of the signal if it has aborted
 */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  {
    clock,
    signal,
    maxAttempts = Number.POSITIVE_INFINITY,
    maxElapsedMs = Number.POSITIVE_INFINITY,
    delayMs,
  }: RetryRules,
): Promise<Result> {
  const startMs = clock.monotonicMs();
  for (let failedAttempts = 1; ; failedAttempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const isLast = failedAttempts >= maxAttempts || clock.monotonicMs() - startMs >= maxElapsedMs;
      const waitMs = isLast ? null : delayMs(error, failedAttempts);
      if (waitMs === null) throw error;
      await pause(clock, waitMs, signal);
      signal.throwIfAborted();
    }
  }
}

/** Whether an HTTP status is one after which the same request may succeed later; 101 answers nothing that was asked. */
export function isPassingStatus(status: number): boolean {
  return status < 200 || status === 408 || status === 429 || status >= 500;
}

const SECONDS = /^\d{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]+,? .* GMT$/;

/** Parses a `Retry-After` header, seconds or an HTTP-date, to milliseconds from now; `null` if it is missing or invalid. */
export function parseRetryAfterMs(header: string | undefined, nowUnixMs: number): number | null {
  const text = header?.trim() ?? '';
  if (SECONDS.test(text)) return Number(text) * 1_000;
  const atUnixMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atUnixMs) ? null : Math.max(0, atUnixMs - nowUnixMs);
}
