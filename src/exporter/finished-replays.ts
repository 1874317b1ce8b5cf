import type { Clock } from '../component/clock.js';
import type { TraceId } from '../record/ids.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { RunReplay } from './run-replay.js';

/** How long a run that was sent to its end is remembered, in milliseconds: 10 minutes. */
const KEPT_MS = 600_000;
/** Runs that are remembered, and the memory that they may take together, as estimated, in bytes. */
const MAX_RUNS = 16;
const MAX_BYTES = 32 * 1024 * 1024;

interface Kept {
  readonly replay: RunReplay;
  readonly bytes: number;
  readonly untilMs: number;
}

/**
 * Runs that were sent to their end a short while ago, each with what its mapper remembers: records that come late are
 * mapped alone, and not with the whole log before them. Whatever is not here is found again by reading the log.
 */
export class FinishedReplays {
  /** The one that ended longest ago is the first. */
  private readonly replays = new Map<TraceId, Kept>();
  private bytes = 0;

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** @param bytes memory that it takes, as estimated */
  keep(traceId: TraceId, replay: RunReplay, bytes: number): void {
    this.drop(traceId);
    const nowMs = this.clock.monotonicMs();
    this.replays.set(traceId, { replay, bytes, untilMs: nowMs + KEPT_MS });
    this.bytes += bytes;
    for (const [oldest, { untilMs }] of this.replays) {
      const isTooMuch = this.replays.size > MAX_RUNS || this.bytes > MAX_BYTES;
      if (!isTooMuch && untilMs > nowMs) break;
      this.drop(oldest);
    }
  }

  /** Takes out what stands just where a cursor does. */
  take(traceId: TraceId, { finishedAtBytes, tracesOffset, logsOffset }: ExportCursor): RunReplay | undefined {
    const kept = this.replays.get(traceId);
    this.drop(traceId);
    const isThere = [tracesOffset, logsOffset, kept?.replay.readOffset].every((offset) => offset === finishedAtBytes);
    return isThere ? kept?.replay : undefined;
  }

  drop(traceId: TraceId): void {
    this.bytes -= this.replays.get(traceId)?.bytes ?? 0;
    this.replays.delete(traceId);
  }
}
