import type { Clock } from '../component/clock.js';
import { pause } from '../component/pause.js';
import type { TraceId } from '../record/ids.js';
import { ConsumeError, type RecordConsumer } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { batchesOf } from './batch-builder.js';
import { joinBatches } from './join-batches.js';

/** A record that came through a pipe, with the bytes of its line. */
export interface PipedRecord {
  readonly record: TelemetryRecord;
  readonly raw: Uint8Array;
}

/** What waits for a slow store, as bytes of lines; beyond it the pipe waits, too: 8 MiB. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** How long a store that takes nothing is tried again, in milliseconds. */
const GIVE_UP_MS = 30_000;
const never = new AbortController().signal;

/**
 * Hands records to a consumer beside the pipe that they came through, which goes on meanwhile. When the consumer fails for
 * good, that is told once, with the lines that it has not got, and nothing more is taken.
 */
export class PipeStore {
  readonly traceIds = new Set<TraceId>();
  recordCount = 0;
  private waiting: PipedRecord[] = [];
  private waitingBytes = 0;
  private working: Promise<void> | undefined;
  private failed = false;

  /** @param onFailed gets the lines that were not taken. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly onFailed: (error: unknown, lines: readonly Uint8Array[]) => Promise<void>,
  ) {}

  /** Whether it takes nothing any more. */
  get hasFailed(): boolean {
    return this.failed;
  }

  /** Takes a record; resolves when there is room for the next. */
  async add(piped: PipedRecord): Promise<void> {
    this.waiting.push(piped);
    this.waitingBytes += piped.raw.length;
    this.working ??= this.work();
    if (this.waitingBytes > MAX_WAITING_BYTES) await this.working;
  }

  /** Resolves when everything was handed over, or given up. */
  async drain(): Promise<void> {
    await this.working;
  }

  private async work(): Promise<void> {
    // What comes in this turn goes with it.
    await Promise.resolve();
    while (this.waiting.length > 0 && !this.failed) {
      const taken = this.waiting;
      this.waiting = [];
      this.waitingBytes = 0;
      try {
        await this.hand(taken);
      } catch (error) {
        this.failed = true;
        await this.onFailed(
          error,
          [...taken, ...this.waiting].map(({ raw }) => raw),
        );
        this.waiting = [];
      }
    }
    this.working = undefined;
  }

  private async hand(taken: readonly PipedRecord[]): Promise<void> {
    const delivery = joinBatches({ batches: batchesOf(taken.map(({ record }) => record)), foreign: [] });
    const startMs = this.clock.monotonicMs();
    for (;;) {
      try {
        await this.consumer.consume(delivery);
        break;
      } catch (error) {
        const isPassing = error instanceof ConsumeError && error.code !== 'refused';
        if (!isPassing || this.clock.monotonicMs() - startMs > GIVE_UP_MS) throw error;
        await pause(this.clock, error.retryAfterMs, never);
      }
    }
    for (const { traceId } of delivery.batches) this.traceIds.add(traceId);
    this.recordCount += taken.length;
  }
}
