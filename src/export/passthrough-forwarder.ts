import type { RetryPolicy, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { PassthroughEntry, PassthroughLogReader, PassthroughPosition } from '../log/passthrough-segments.js';
import type { Signal } from '../record/record-batch.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { PassthroughCursor } from '../storage/cursor-store.js';
import type { ExportDeps, ExportWorkerDeps, SendResult } from './destination.js';
import type { PassthroughRedaction } from './passthrough-redaction.js';
import {
  ATTEMPTS_BEFORE_HALVING,
  ATTEMPTS_OF_ONE,
  deniesLogs,
  meaningOf,
  type SignalBreaker,
} from './signal-breaker.js';

/** A message that fails again and again. Whether it is at fault, or the receiver, say the next ones of its signal. */
interface Suspect {
  readonly breaker: SignalBreaker;
  readonly result: SendResult;
  /** The cursor behind it. */
  readonly next: PassthroughCursor;
  /** How many messages behind it have been tried. */
  triedCount: number;
}

/** The parts of a forwarder. */
interface PassthroughForwarderDeps
  extends Pick<
    ExportWorkerDeps,
    'destination' | 'cursors' | 'clock' | 'logger' | 'retryPolicy' | 'requestRetryPolicy'
  > {
  readonly breakers: Readonly<Record<Signal, SignalBreaker>>;
  readonly reader: PassthroughLogReader;
  /** Called whenever it has come to rest. */
  readonly onRest: () => void;
}

/** So many messages behind one that fails are tried, at most: where none of them is taken, it is the receiver. */
const MAX_TRIED_AHEAD = 8;

/** Forwards the telemetry of other services to one destination, one message after the other, from its cursor on. */
export class PassthroughForwarder {
  private cursor: PassthroughCursor | undefined;
  /** Cursors behind messages that were taken before those in front of them. */
  private readonly takenAhead = new Set<string>();
  private running: Promise<void> | undefined;
  private isWokenAgain = false;
  private hasMore = false;
  /** Attempts that failed in a row: a single message that was not taken, or a fault of our own. */
  private failedInRow = 0;
  private hasLoggedFault = false;
  private retryTimer: Timer | undefined;

  constructor(
    private readonly deps: PassthroughForwarderDeps,
    private readonly abort: AbortSignal,
  ) {}

  /** @param isNew the destination was registered just now: what is kept already is not for it. */
  async start(isNew: boolean): Promise<void> {
    const { cursors, destination, reader } = this.deps;
    this.cursor = await cursors.findPassthrough(destination.name);
    if (this.cursor !== undefined || !isNew) return;
    this.cursor = await reader.end();
    if (this.cursor !== undefined) await cursors.savePassthrough(destination.name, this.cursor);
  }

  /** Returns whether it waits before it tries again. */
  get isWaiting(): boolean {
    return this.retryTimer !== undefined;
  }

  get isResting(): boolean {
    return this.running === undefined;
  }

  /** Returns whether everything was forwarded that was there. */
  get isDrained(): boolean {
    return this.isResting && !this.hasMore;
  }

  /** There may be something to forward. */
  wake(): void {
    this.hasMore = true;
    if (this.running !== undefined) {
      this.isWokenAgain = true;
      return;
    }
    this.running = this.run();
  }

  /** Resolves when nothing is under way. */
  async rest(): Promise<void> {
    this.retryTimer?.cancel();
    await this.running;
  }

  private async run(): Promise<void> {
    do {
      this.isWokenAgain = false;
      try {
        this.hasMore = !(await this.forwardAll());
        if (!this.hasMore) this.hasLoggedFault = false;
      } catch (error) {
        this.fault(error);
      }
    } while (this.isWokenAgain && !this.abort.aborted);
    this.running = undefined;
    this.deps.onRest();
  }

  /** Forwards what there is. @returns whether it read to the end */
  private async forwardAll(): Promise<boolean> {
    const { destination, breakers, reader } = this.deps;
    let suspect: Suspect | undefined;
    for await (const entry of reader.read(this.cursor)) {
      if (this.abort.aborted) return false;
      const breaker = breakers[entry.signal];
      // Other signals may go elsewhere: they say nothing of it, and go when it is decided.
      if (suspect !== undefined && breaker !== suspect.breaker) continue;
      if (breaker.state === 'waiting') return false;
      const isTakenAhead = this.takenAhead.has(nameOf(entry.next));
      if (breaker.state === 'ready' && destination.forward !== undefined && !isTakenAhead) {
        const isHalved = this.failedInRow >= ATTEMPTS_BEFORE_HALVING - 1;
        const result = await destination.forward(entry.signal, entry.body, this.abort, isHalved);
        if (this.abort.aborted && result.kind === 'retryable') return false;
        if (suspect !== undefined) {
          if (result.kind !== 'accepted') {
            suspect.triedCount += 1;
            if (meaningOf(result) !== 'failed' || suspect.triedCount >= MAX_TRIED_AHEAD) break;
            continue;
          }
          breaker.settle(result, 1, 'forwarded');
          await this.giveUp(suspect, entry.next);
          return false;
        }
        if (this.isSuspicious(breaker, result)) {
          suspect = { breaker, result, next: entry.next, triedCount: 0 };
          continue;
        }
        const isSure = !breaker.isDenial(result) || (await deniesLogs(destination, breaker, this.abort));
        const next = breaker.settle(result, 1, 'forwarded', isSure);
        // When a pause is over, the breaker wakes this.
        if (next === 'retry') this.retryLater(this.deps.requestRetryPolicy);
        if (next === 'paused') this.failedInRow += 1;
        if (next !== 'done') return false;
        this.failedInRow = 0;
      }
      // Nothing is passed over that may still be sent.
      if (suspect === undefined) await this.moveTo(entry.next);
    }
    if (suspect === undefined) return true;
    const next = suspect.breaker.settle(suspect.result, 1, 'forwarded');
    if (next === 'retry') this.retryLater(this.deps.requestRetryPolicy);
    // The signal has been turned off meanwhile: what was suspected is passed over like all of it.
    if (next === 'done') this.isWokenAgain = true;
    return false;
  }

  private isSuspicious(breaker: SignalBreaker, result: SendResult): boolean {
    if (breaker.isDenial(result) || meaningOf(result) !== 'failed') return false;
    return this.failedInRow >= ATTEMPTS_OF_ONE - 1;
  }

  /** A message behind it was taken. What stands between the two is read next. */
  private async giveUp({ breaker, result, next }: Suspect, takenAhead: PassthroughCursor): Promise<void> {
    breaker.giveUp(result, 1);
    this.failedInRow = 0;
    this.takenAhead.add(nameOf(takenAhead));
    this.isWokenAgain = true;
    await this.moveTo(next);
  }

  private async moveTo(cursor: PassthroughCursor): Promise<void> {
    this.cursor = cursor;
    this.takenAhead.delete(nameOf(cursor));
    await this.deps.cursors.savePassthrough(this.deps.destination.name, cursor);
  }

  private fault(error: unknown): void {
    this.retryLater(this.deps.retryPolicy);
    if (this.hasLoggedFault) return;
    this.hasLoggedFault = true;
    this.deps.logger.error(
      { destination: this.deps.destination.name, error: reasonOf(error) },
      'failed to forward telemetry of other services; retrying',
    );
  }

  private retryLater(policy: RetryPolicy): void {
    this.failedInRow += 1;
    this.retryTimer?.cancel();
    this.retryTimer = this.deps.clock.after(policy.delayMs(this.failedInRow, null), () => {
      this.retryTimer = undefined;
      if (!this.abort.aborted) this.wake();
    });
  }
}

function nameOf({ segment, offset }: PassthroughCursor): string {
  return `${segment}:${offset}`;
}

/** So much telemetry of other services is read before others get a turn. */
const MAX_PASSTHROUGH_BYTES = 256 * 1024;
const MAX_PASSTHROUGH_ENTRIES = 64;

/** The telemetry of other services as a destination gets it: what in it is the engine's is redacted. */
export class RedactedPassthrough implements PassthroughLogReader {
  /** Loaded where it is needed: most exports are of the engine's telemetry alone. */
  private readonly redaction: Lazy<PassthroughRedaction>;

  constructor(
    private readonly reader: PassthroughLogReader,
    level: RedactionLevel,
    private readonly deps: Pick<ExportDeps, 'turns'> & { readonly engineNames: readonly string[] },
  ) {
    this.redaction = lazy(async () => {
      const { PassthroughRedaction: Redaction } = await import('./passthrough-redaction.js');
      return new Redaction(level, deps.engineNames);
    });
  }

  async *read(from?: PassthroughPosition): AsyncIterable<PassthroughEntry> {
    let [byteCount, entryCount] = [0, 0];
    for await (const entry of this.reader.read(from)) {
      byteCount += entry.body.length;
      entryCount += 1;
      // Some that nobody asks for are passed over without waiting for anything.
      if (byteCount > MAX_PASSTHROUGH_BYTES || entryCount > MAX_PASSTHROUGH_ENTRIES) {
        await this.deps.turns.next();
        [byteCount, entryCount] = [0, 0];
      }
      const redaction = await this.redaction.get();
      yield { ...entry, body: redaction.redact(entry.signal, entry.body) };
    }
  }

  end(): Promise<PassthroughPosition | undefined> {
    return this.reader.end();
  }
}
