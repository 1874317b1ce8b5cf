import type { Timer } from '../core/clock.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ExportCursor, PendingRun } from '../storage/cursor-store.js';
import type { BacklogStatus, ExportWorkerDeps } from './destination.js';
import type { ExportRun } from './export-run.js';

type BacklogKeeperDeps = Pick<
  ExportWorkerDeps,
  'destination' | 'cursors' | 'reader' | 'runs' | 'clock' | 'logger' | 'onFailed'
>;

/** What the keeper asks of the worker. */
export interface BacklogKeeperHost {
  /** Everything of a run that is under way or in memory is let go; `undefined` where it is not to be sent. */
  release(run: ExportRun): Promise<ExportCursor | undefined>;
  /** A run's cursor has moved. */
  resume(run: ExportRun): void;
}

/** The backlog is looked at so often in its greatest age, but not more rarely than each minute. */
const CHECKS = 10;
const MAX_CHECK_MS = 60_000;

/**
 * How much a destination has not got, since when, and what of it is too old to be sent at all. Ages are counted on the
 * monotonic clock, so that a jump of the machine's time gives nothing up; only the age of what was there at the start is
 * taken from the wall clock.
 */
export class BacklogKeeper {
  private givenUp = { runs: 0, spans: 0, logs: 0, bytes: 0 };
  private timer: Timer | undefined;

  /** @param maxAgeMs `null`: nothing is given up. @param runs all that are not sent to their end. */
  constructor(
    private readonly maxAgeMs: number | null,
    private readonly deps: BacklogKeeperDeps,
    private readonly runs: ReadonlyMap<TraceId, ExportRun>,
    private readonly host: BacklogKeeperHost,
  ) {}

  status(): BacklogStatus {
    let lagBytes = 0;
    let oldestMs: number | undefined;
    for (const run of this.runs.values()) {
      const lag = run.lagBytes;
      if (lag === 0) continue;
      lagBytes += lag;
      const atMs = run.times.at(run.settledBytes);
      if (atMs !== undefined && atMs < (oldestMs ?? Infinity)) oldestMs = atMs;
    }
    const ageMs = oldestMs === undefined ? 0 : this.deps.clock.monotonicMs() - oldestMs;
    return {
      lagBytes,
      oldestUnsentSeconds: Math.max(0, Math.round(ageMs / 1_000)),
      givenUpRunCount: this.givenUp.runs,
      givenUpSpanCount: this.givenUp.spans,
      givenUpLogCount: this.givenUp.logs,
    };
  }

  /** Takes up a run that was pending when the worker started. */
  takeUp(run: ExportRun, pending: PendingRun, nowUnixMs: number): void {
    run.cursor = pending.cursor;
    run.knownBytes = Math.max(run.knownBytes, pending.logBytes);
    run.settledBytes = Math.min(pending.cursor.tracesOffset, pending.cursor.logsOffset);
    this.noteSeen(run, pending, nowUnixMs);
  }

  /** Notes a run of which nothing is known but what its summary says. */
  noteSeen(run: ExportRun, seen: Omit<PendingRun, 'cursor'>, nowUnixMs: number): void {
    if (!run.times.isEmpty) return;
    const nowMs = this.deps.clock.monotonicMs();
    const resentUnixMs = run.cursor?.resentUnixMs ?? 0;
    const agoMs = (unixMs: number) => nowMs - Math.max(0, nowUnixMs - Math.max(unixMs, resentUnixMs));
    run.times.note(seen.logBytes, agoMs(seen.firstSeenUnixMs), agoMs(seen.lastSeenUnixMs));
  }

  /** Gives up what is too old, now and whenever some more may be, until the worker stops. */
  watch(stop: AbortSignal): void {
    if (this.maxAgeMs === null || stop.aborted) return;
    this.checkLater(Math.min(MAX_CHECK_MS, this.maxAgeMs / CHECKS), stop);
    stop.addEventListener('abort', () => this.timer?.cancel(), { once: true });
  }

  private checkLater(delayMs: number, stop: AbortSignal): void {
    this.timer = this.deps.clock.after(delayMs, () => {
      this.giveUpOld().then(() => {
        if (!stop.aborted) this.checkLater(delayMs, stop);
      }, this.deps.onFailed);
    });
  }

  private async giveUpOld(): Promise<void> {
    const { destination, logger, clock } = this.deps;
    const cutoffMs = clock.monotonicMs() - (this.maxAgeMs ?? Infinity);
    const before = this.givenUp;
    for (const run of [...this.runs.values()]) {
      const toOffset = run.times.before(cutoffMs);
      if (run.isInTurn || run.lagBytes === 0 || toOffset <= run.settledBytes) continue;
      try {
        await this.giveUp(run, toOffset);
      } catch (error) {
        logger.error(
          { destination: destination.name, traceId: run.traceId, error: String(error) },
          'failed to discard an old export; retrying',
        );
      }
    }
    const { runs, spans, logs, bytes } = this.givenUp;
    if (runs === before.runs) return;
    logger.error(
      {
        destination: destination.name,
        runs: runs - before.runs,
        spans: spans - before.spans,
        logs: logs - before.logs,
        bytes: bytes - before.bytes,
      },
      'discarded exports older than max-backlog-age; the runs are still on disk',
    );
  }

  private async giveUp(run: ExportRun, toOffset: number): Promise<void> {
    const cursor = await this.host.release(run);
    if (cursor === undefined) return;
    const counts = await this.count(cursor, toOffset);
    const isWhole = toOffset === run.knownBytes && (await this.isFinishedAt(run, toOffset));
    run.cursor = {
      ...cursor,
      tracesOffset: Math.max(cursor.tracesOffset, toOffset),
      logsOffset: Math.max(cursor.logsOffset, toOffset),
      finishedAtBytes: isWhole ? toOffset : cursor.finishedAtBytes,
    };
    await this.deps.cursors.save([run.cursor]);
    const { runs, spans, logs, bytes } = this.givenUp;
    this.givenUp = {
      runs: runs + 1,
      spans: spans + counts.spans,
      logs: logs + counts.logs,
      bytes: bytes + Math.max(0, toOffset - run.settledBytes),
    };
    run.settledBytes = toOffset;
    this.host.resume(run);
  }

  private async count(cursor: ExportCursor, toOffset: number): Promise<{ spans: number; logs: number }> {
    const { reader, destination } = this.deps;
    const { tracesOffset, logsOffset, traceId } = cursor;
    const from = { traces: tracesOffset, logs: logsOffset };
    const counts = { spans: 0, logs: 0 };
    const fromOffset = Math.min(...destination.signals.map((signal) => from[signal]));
    if (fromOffset >= toOffset) return counts;
    for await (const records of reader.read(traceId, { fromOffset, toOffset })) {
      for (const { record, offset } of records) {
        if (record.recordType === 'SpanEnd' && offset >= from.traces) counts.spans += 1;
        if (record.recordType === 'LogRecord' && offset >= from.logs) counts.logs += 1;
      }
    }
    if (!destination.signals.includes('traces')) counts.spans = 0;
    if (!destination.signals.includes('logs')) counts.logs = 0;
    return counts;
  }

  private async isFinishedAt(run: ExportRun, logBytes: number): Promise<boolean> {
    const summary = run.finished ?? (await this.deps.runs.find(run.traceId));
    return summary?.state === 'finished' && summary.logBytes === logBytes;
  }
}
