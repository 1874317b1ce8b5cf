/** A pending timer; cancelling it twice, or after it fired, does nothing. */
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

/** A timer for the earliest of several times. It fires once; later times have to be requested again. */
export class EarliestTimer {
  private timer: Timer | undefined;
  private due = Number.POSITIVE_INFINITY;

  /** @param callback is called when the time has come, after the timer was reset */
  constructor(
    private readonly clock: Clock,
    private readonly callback: () => void,
  ) {}

  /** The time at which it fires, in monotonic milliseconds; infinity while it is not set. */
  get dueMs(): number {
    return this.due;
  }

  /** Makes the timer fire after `delayMs`, at least 1 ms, unless it is set to fire sooner. */
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
  private running: Promise<void> = Promise.resolve();
  private isGoingOn = false;

  /** @param action the work @param onError receives its exceptions; the task continues */
  constructor(
    private readonly intervalMs: number,
    private readonly clock: Clock,
    private readonly action: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Starts the task. @param firstMs the delay before the first run, in milliseconds; the interval by default */
  start(firstMs = this.intervalMs): void {
    this.isGoingOn = true;
    this.later(firstMs);
  }

  /** Starts no further run and waits for a running one to end. */
  async stop(): Promise<void> {
    this.isGoingOn = false;
    this.timer?.cancel();
    await this.running;
  }

  private later(delayMs: number): void {
    if (!this.isGoingOn) return;
    this.timer = this.clock.after(delayMs, () => {
      this.running = this.action()
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

/** The defaults for destinations: a receiver that comes back gets what it missed within a minute. */
export const DEFAULT_RETRY_POLICY: RetryPolicyOptions = { baseMs: 1_000, maxMs: 60_000, maxRetryAfterMs: 600_000 };

/** The policy for one failed request while others succeed: the waits are short, since the requests behind it have to wait as well. */
export const REQUEST_RETRY_POLICY: RetryPolicyOptions = { baseMs: 100, maxMs: 5_000, maxRetryAfterMs: 600_000 };

/** The shortest wait as a part of `baseMs`, so that jitter cannot cause a busy loop. */
const SHORTEST_PART = 0.1;

/**
 * Computes waits by exponential backoff with full jitter, so that senders that failed together do not come back together
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 */
export class RetryPolicy {
  /** @param random returns a number in [0, 1); by default each wait is as long as its upper bound */
  constructor(
    private readonly options: RetryPolicyOptions,
    private readonly random: () => number = () => 1,
  ) {}

  /**
   * Returns the wait before the next attempt, in milliseconds.
   * @param failedAttempts consecutive failures so far, from 1
   * @param retryAfterMs requested by the receiver; respected up to `maxRetryAfterMs`, with jitter on top
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
  /** No attempt follows a failure this many milliseconds after the first attempt began. Default: unlimited. */
  readonly maxElapsedMs?: number;
  /**
   * Returns the wait before the next attempt, in milliseconds; `null` if another attempt would not help.
   * @param failedAttempts attempts that failed so far, from 1
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

/** Whether the same request may succeed later after this HTTP status. A status below 200 (such as 101) is not an answer to the request. */
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
