import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { Refusal } from './refusal.js';

/** A reason is logged once in this time, in milliseconds, with the number of times it was not. */
const QUIET_MS = 60_000;

/** Nobody is there any more, or whoever refuses says when that begins and ends. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set(['aborted', 'shortage', 'unavailable']);

/** Tells the user why nothing, or not everything, arrives, without a line for each request of a misconfigured sender. */
export class RefusalLog {
  /** By reason; reasons are a closed set, so this map is bounded. */
  private readonly tallies = new Map<string, { loggedAtMs: number; unloggedCount: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** A request was not taken. @param cause logged where the refusal's message keeps it from the sender. */
  add(refusal: Refusal, cause: unknown): void {
    const unloggedCount = this.count(refusal.reason);
    if (unloggedCount === undefined) return;
    const { status, reason, message: detail } = refusal;
    const fields = { status, reason, detail, unloggedCount };
    if (refusal.status === 500) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      this.logger.error({ ...fields, stack }, 'request failed');
    } else if (TOLD_ELSEWHERE.has(refusal.reason)) this.logger.debug(fields, 'request not taken');
    else this.logger.warn(fields, 'request not taken');
  }

  /** A request was taken less some records, which few senders ever tell their user. */
  addPartial(rejectedCount: number, detail: string): void {
    const unloggedCount = this.count('partial');
    if (unloggedCount !== undefined) this.logger.warn({ rejectedCount, detail, unloggedCount }, 'records not taken');
  }

  /** How often the reason went unlogged; `undefined` while it is still too early to log it again. */
  private count(reason: string): number | undefined {
    const nowMs = this.clock.monotonicMs();
    const tally = this.tallies.get(reason);
    if (tally !== undefined && nowMs - tally.loggedAtMs < QUIET_MS) {
      tally.unloggedCount += 1;
      return undefined;
    }
    this.tallies.set(reason, { loggedAtMs: nowMs, unloggedCount: 0 });
    return tally?.unloggedCount ?? 0;
  }
}
