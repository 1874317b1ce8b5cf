import type { Clock } from './clock.js';
import type { LogFields, Logger } from './logger.js';

/** Why nothing more is accepted at the moment. */
export interface Shortage {
  /** One sentence for the operator: the shortage, and the setting that changes the limit. */
  readonly message: string;
  /** When to come back, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Is asked before work is taken on, so that what was taken on can be finished. */
export interface Guard {
  /**
   * Whether there is room for a body; answers immediately from known values.
   * @param bodyBytes announced length of the body; 0 if unknown.
   * @returns `undefined` if it may be read.
   */
  findShortage(bodyBytes: number): Shortage | undefined;
  /** Counts a body that was read, in bytes after inflating. */
  onBody(bodyBytes: number): void;
}

/** Log messages of a period of refusals. */
export interface RefusalWords {
  /** For example `requests are refused: memory is short`. */
  readonly began: string;
  readonly ended: string;
}

/** A period in which requests are refused: logged once at its start and once at its end, however many are refused. */
export class RefusalPeriod {
  private reason: string | undefined;
  private beganAtMs = 0;
  private refusedCount = 0;

  constructor(
    private readonly words: RefusalWords,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Whether requests are refused now. */
  get isOn(): boolean {
    return this.reason !== undefined;
  }

  /** How many were refused since it began; 0 when it is over. */
  get count(): number {
    return this.isOn ? this.refusedCount : 0;
  }

  /** @param reason what is short, in one word that stays the same while it lasts; `undefined` when nothing is. */
  update(reason: string | undefined, fields: LogFields): void {
    if (reason === this.reason) return;
    if (this.reason !== undefined) this.end(fields);
    this.reason = reason;
    if (reason === undefined) return;
    this.beganAtMs = this.clock.monotonicMs();
    this.refusedCount = 0;
    this.logger.warn({ reason, ...fields }, this.words.began);
  }

  /** Counts a request that was refused. */
  add(): void {
    this.refusedCount += 1;
  }

  private end(fields: LogFields): void {
    const lastedMs = Math.round(this.clock.monotonicMs() - this.beganAtMs);
    this.logger.info({ reason: this.reason, refusedCount: this.refusedCount, lastedMs, ...fields }, this.words.ended);
  }
}
