import { type Clock, EarliestTimer } from '../core/clock.js';
import type { TraceId } from '../record/ids.js';
import type { PendingVerdict } from './run-state.js';

/** What is remembered of a run that has no end and was dropped from memory. */
export interface ParkedRun {
  /** When the run is due again, in monotonic milliseconds. */
  readonly dueMs: number;
  /** When its last record arrived, in monotonic milliseconds. */
  readonly lastArrivalMs: number;
  readonly lastSeenUnixMs: number;
  /** Its verdict if no more records arrive, if known. */
  readonly forecast: PendingVerdict | undefined;
}

/** Runs that are remembered, about 150 bytes each; one that comes on top is judged at the next start. */
const MAX_PARKED = 200_000;
/** Maximum number of pending verdicts; beyond, a run's log is read again at its end. */
const MAX_FORECASTS = 2_000;
/** Maximum number of runs that are woken together; the next ones follow when these have their verdicts. */
const MAX_WOKEN = 16;
const NEXT_WAKE_MS = 50;

/**
 * Open runs that were evicted from memory, and when each is due again. A sender of ever new trace ids
 * fills only this list.
 */
export class EvictedRuns {
  private readonly runs = new Map<TraceId, ParkedRun>();
  private readonly timer: EarliestTimer;
  private forecastCount = 0;

  /** @param wake receives each run that is due, which is then no longer evicted */
  constructor(
    private readonly clock: Clock,
    private readonly wake: (traceId: TraceId, parked: ParkedRun) => void,
  ) {
    this.timer = new EarliestTimer(clock, () => this.wakeDue());
  }

  get count(): number {
    return this.runs.size;
  }

  add(traceId: TraceId, parked: ParkedRun): void {
    if (this.runs.size >= MAX_PARKED) return;
    this.delete(traceId);
    const hasRoom = this.forecastCount < MAX_FORECASTS;
    const kept = hasRoom ? parked : { ...parked, forecast: undefined };
    if (kept.forecast !== undefined) this.forecastCount += 1;
    this.runs.set(traceId, kept);
    this.wakeAt(parked.dueMs);
  }

  /** Another process follows the run. */
  delete(traceId: TraceId): void {
    if (this.runs.get(traceId)?.forecast !== undefined) this.forecastCount -= 1;
    this.runs.delete(traceId);
  }

  stop(): void {
    this.timer.cancel();
    this.runs.clear();
    this.forecastCount = 0;
  }

  private wakeAt(dueMs: number): void {
    this.timer.within(dueMs - this.clock.monotonicMs());
  }

  private wakeDue(): void {
    const nowMs = this.clock.monotonicMs();
    let wokenCount = 0;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [traceId, parked] of this.runs) {
      const { dueMs } = parked;
      if (dueMs > nowMs) nextMs = Math.min(nextMs, dueMs);
      else if (wokenCount >= MAX_WOKEN) nextMs = Math.min(nextMs, nowMs + NEXT_WAKE_MS);
      else {
        wokenCount += 1;
        this.delete(traceId);
        this.wake(traceId, parked);
      }
    }
    if (this.runs.size > 0) this.wakeAt(nextMs);
  }
}
