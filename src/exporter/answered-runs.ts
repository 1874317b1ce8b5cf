import type { Clock } from '../component/clock.js';
import type { TraceId } from '../record/ids.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { CursorSaver } from './cursor-saver.js';
import type { ExportRun } from './export-run.js';
import type { FinishedReplays } from './run-replay.js';
import type { ExportStretch } from './signal-queue.js';
import type { LaneSenders } from './signal-senders.js';

/** What it asks of the worker. */
export interface AnsweredRunsHost {
  close(run: ExportRun): void;
  enqueue(run: ExportRun): void;
  /** The run was sent to its end; more of it may have come meanwhile. */
  ended(run: ExportRun): void;
}

/** Moves cursors after what was answered, and ends runs whose last items were. */
export class AnsweredRuns {
  constructor(
    private readonly runs: ReadonlyMap<TraceId, ExportRun>,
    private readonly deps: {
      readonly senders: LaneSenders;
      readonly saver: CursorSaver;
      readonly finished: FinishedReplays;
      readonly clock: Clock;
    },
    private readonly host: AnsweredRunsHost,
  ) {}

  /** Resolves when it is saved: until then no further request takes the place of the one that was answered. */
  async take(stretches: readonly ExportStretch[]): Promise<void> {
    const { senders, saver, clock } = this.deps;
    for (const stretch of stretches) stretch.progress.answered(stretch);
    // A lane that was turned off leaves runs that wait for nothing more.
    const answered = stretches.flatMap(({ progress }) => this.runs.get(progress.traceId) ?? []);
    const runs = new Set(senders.clearOff() ? this.runs.values() : answered);
    const moved: ExportCursor[] = [];
    for (const run of runs) {
      if (run.cursor === undefined) continue;
      run.progressMs ??= clock.monotonicMs();
      const cursor = senders.advance(run.progress, run.cursor);
      if (cursor.tracesOffset > run.cursor.tracesOffset || cursor.logsOffset > run.cursor.logsOffset) {
        run.cursor = cursor;
        moved.push(cursor);
      }
    }
    await saver.save(moved);
    for (const run of runs) await this.endIfClosed(run);
  }

  /** Takes down that a run is sent to its end, once its last items were answered. */
  async endIfClosed(run: ExportRun): Promise<void> {
    const { cursor, closingAtBytes: logBytes } = run;
    if (logBytes === undefined || cursor === undefined || run.isOutstanding) return;
    const { replay, memoryBytes, hasMissed } = run;
    this.host.close(run);
    if (hasMissed) {
      run.isBehind = run.knownBytes > logBytes;
      this.host.enqueue(run);
      return;
    }
    run.cursor = { ...cursor, tracesOffset: logBytes, logsOffset: logBytes, finishedAtBytes: logBytes };
    run.settledBytes = logBytes;
    if (replay?.readOffset === logBytes) this.deps.finished.keep(run.traceId, replay, memoryBytes);
    await this.deps.saver.save([run.cursor]);
    this.host.ended(run);
  }
}
