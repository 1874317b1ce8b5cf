import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { Refusal } from './refusal.js';

/** A reason is logged once in this time, in milliseconds, with the number of refusals since. */
const QUIET_MS = 60_000;

/** Tells the user why nothing arrives, without a line for each request of a misconfigured sender. */
export class RefusalLog {
  private readonly tallies = new Map<string, { loggedAtMs: number; unloggedCount: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** @param cause logged where the refusal's message keeps it from the sender. */
  add(refusal: Refusal, cause: unknown): void {
    const nowMs = this.clock.monotonicMs();
    // Reasons are a closed set, so this map is bounded.
    const tally = this.tallies.get(refusal.reason);
    if (tally !== undefined && nowMs - tally.loggedAtMs < QUIET_MS) {
      tally.unloggedCount += 1;
      return;
    }
    this.tallies.set(refusal.reason, { loggedAtMs: nowMs, unloggedCount: 0 });
    const fields = {
      status: refusal.status,
      reason: refusal.reason,
      detail: refusal.message,
      beforeCount: tally?.unloggedCount ?? 0,
    };
    if (refusal.status === 500) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      this.logger.error({ ...fields, stack }, 'request failed');
    } else if (refusal.reason === 'aborted') this.logger.debug(fields, 'request not taken');
    else this.logger.warn(fields, 'request not taken');
  }
}
