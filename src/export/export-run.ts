import type { Timer } from '../core/clock.js';
import { type Clock, type RetryPolicy, retry } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import type { Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore, ExportCursor } from '../storage/cursor-store.js';
import type { RunReplay } from './run-mapper.js';
import { SignalProgress, type SignalQueue } from './signal-queue.js';
import type { MappedItems } from './wire/item-window.js';

/** What an open run takes at least, in bytes: a block for lines and one for items. */
const OPEN_RUN_BYTES = 512 * 1024;
/** What a mapper remembers of each byte it has read: ids, parents and names of spans. Measured with lines of 1 KB. */
const REMEMBERED_PART = 1 / 6;
/** A mapper's memory of spans is bounded, so that more than this part of a log changes nothing, in bytes. */
const MAX_REMEMBERED_BYTES = 256 * 1024 * 1024;
/** A span that is buffered with its attributes, in bytes. */
const BUFFERED_SPAN_BYTES = 1_536;

/**
 * One run on its way to one destination. Everything but the cursor can be thrown away at any time: it is found again by
 * reading the record log from its start.
 */
export class ExportRun {
  /** `undefined` until it was looked up. */
  cursor: ExportCursor | undefined;
  /** The mapper and where it stands; `undefined` while the run is closed. */
  replay: RunReplay | undefined;
  /** What the mapper gave and was not answered. */
  readonly progress: Readonly<Record<Signal, SignalProgress>>;
  readonly times = new AppendTimes();
  /** The run's summary once it is finished; `undefined` when it is open or not known. */
  finished: RunSummary | undefined;
  /** Length of the log as last reported to the worker. */
  knownBytes = 0;
  /** Whether the log's length and the run's summary were looked up; until then `knownBytes` may be too low. */
  isLoaded = false;
  /** Everything before this offset of the log was answered, or gave nothing to send. */
  settledBytes = 0;
  /** Monotonic time of the first batch that was taken since the run was opened; `undefined` while it only replays. */
  progressMs: number | undefined;
  lastTurnMs = 0;
  failedTurns = 0;
  /** There may be records to read, spans to let go, or an end to send. */
  isBehind = true;
  /** Length of the log for which the mapper has given its last items, which are being sent; `undefined` before. */
  closingAtBytes: number | undefined;
  /** Nothing is done for it any more; what comes for its trace makes a new one. */
  isGone = false;
  isInTurn = false;
  /** Its log is being read: what is appended meanwhile is read after that. */
  isReading = false;
  /** Whether it is not known yet which run of which job its items belong to: until then they stay with the mapper. */
  isUnnamed = false;
  quietTimer: Timer | undefined;

  /** Monotonic time at which the worker heard of it. */
  readonly heardMs: number;

  /** @param lastAppendMs monotonic time of the last append, or of the first time that the worker heard of the run. */
  constructor(
    readonly traceId: TraceId,
    queues: Readonly<Record<Signal, SignalQueue>>,
    public lastAppendMs: number,
  ) {
    this.heardMs = lastAppendMs;
    this.progress = {
      traces: new SignalProgress(traceId, queues.traces),
      logs: new SignalProgress(traceId, queues.logs),
    };
  }

  /** Returns whether it is open and has not read all of its log. */
  get isUnread(): boolean {
    return this.replay !== undefined && this.replay.readOffset < this.knownBytes;
  }

  /** Returns whether something of it waits for a request or an answer. */
  get isOutstanding(): boolean {
    return this.progress.traces.isOutstanding || this.progress.logs.isOutstanding;
  }

  /** Returns whether items were evicted, which a new replay has to find. */
  get isEvicted(): boolean {
    return this.progress.traces.isEvicted || this.progress.logs.isEvicted;
  }

  /** Returns whether items were evicted of a signal that waits for nothing now: a new replay brings it further. */
  get canCatchUp(): boolean {
    return this.progress.traces.canCatchUp || this.progress.logs.canCatchUp;
  }

  /** Returns whether something of it waits for a destination that takes nothing now. */
  get isStuck(): boolean {
    return this.progress.traces.isStuck || this.progress.logs.isStuck;
  }

  /** Returns the bytes of the log of which not everything was sent. Buffered spans count from the first that is buffered. */
  get lagBytes(): number {
    this.noteSettled();
    return Math.max(0, this.knownBytes - this.settledBytes);
  }

  /** Estimates how much memory it takes while it is open, in bytes. */
  get memoryBytes(): number {
    if (this.replay === undefined) return 0;
    const remembered = Math.min(this.replay.readOffset, MAX_REMEMBERED_BYTES) * REMEMBERED_PART;
    return OPEN_RUN_BYTES + remembered + this.replay.bufferedCount * BUFFERED_SPAN_BYTES;
  }

  /** Begins to read at a cursor. */
  open(replay: RunReplay, { tracesOffset, logsOffset }: ExportCursor): void {
    this.replay = replay;
    this.progress.traces.open(tracesOffset);
    this.progress.logs.open(logsOffset);
  }

  /** Takes what the mapper gave. @param closingAtBytes length of the log, for a run's last items. */
  enqueue(items: MappedItems, closingAtBytes?: number): void {
    this.closingAtBytes ??= closingAtBytes;
    this.progress.traces.enqueue(items.traces, closingAtBytes);
    this.progress.logs.enqueue(items.logs, closingAtBytes);
  }

  /** Moves the cursor after what was answered. @returns the cursor where it has moved. */
  advance(): ExportCursor | undefined {
    const { cursor, progress } = this;
    if (cursor === undefined) return undefined;
    // What one signal does not take is done with when the other one is.
    const traces = progress.traces.isOff ? 0 : progress.traces.offset;
    const logs = progress.logs.isOff ? 0 : progress.logs.offset;
    const tracesOffset = Math.max(cursor.tracesOffset, progress.traces.isOff ? logs : traces);
    const logsOffset = Math.max(cursor.logsOffset, progress.logs.isOff ? traces : logs);
    if (tracesOffset === cursor.tracesOffset && logsOffset === cursor.logsOffset) return undefined;
    this.cursor = { ...cursor, tracesOffset, logsOffset };
    return this.cursor;
  }

  /** Throws away what can be found again; requests that are under way stay so. */
  close(): void {
    this.noteSettled();
    this.progress.traces.close();
    this.progress.logs.close();
    this.quietTimer?.cancel();
    this.quietTimer = undefined;
    this.closingAtBytes = undefined;
    this.progressMs = undefined;
    this.replay = undefined;
    this.isUnnamed = false;
  }

  /** Closes it for the sake of others: what waits has to be found again, too. */
  evict(): void {
    this.progress.traces.evict();
    this.progress.logs.evict();
    this.close();
  }

  /** Closes it, and lets go of what is under way. */
  abandon(): void {
    this.close();
    this.progress.traces.abandon();
    this.progress.logs.abandon();
  }

  /** Takes down how far it is sent: a signal without items leaves its cursor behind, so where nothing waits, reading is the measure. */
  private noteSettled(): void {
    if (this.cursor === undefined || this.replay === undefined) return;
    const { traces, logs } = this.progress;
    const isOpen = (progress: SignalProgress) => progress.isOutstanding || progress.isEvicted;
    const ends = [this.replay.readOffset];
    if (isOpen(traces)) ends.push(traces.offset);
    else if (this.replay.bufferedCount > 0) ends.push(this.cursor.tracesOffset);
    if (isOpen(logs)) ends.push(logs.offset);
    this.settledBytes = Math.max(this.settledBytes, Math.min(...ends));
  }
}

/** A part of a record log, and when it came. */
interface AppendedPart {
  readonly offset: number;
  endOffset: number;
  readonly fromMs: number;
  toMs: number;
}

/** Parts kept for a run; when there are more, each two are taken together. */
const MAX_APPENDED_PARTS = 64;
/** Appends within this time make one part, in milliseconds. */
const APPENDED_PART_MS = 1_000;

/** When the parts of a run's record log came, roughly, in few numbers. Times are monotonic milliseconds. */
export class AppendTimes {
  private parts: AppendedPart[] = [];

  get isEmpty(): boolean {
    return this.parts.length === 0;
  }

  /** All before `endOffset` that did not come earlier came between two times, which are one where only one is given. */
  note(endOffset: number, fromMs: number, toMs = fromMs): void {
    const last = this.parts.at(-1);
    if (last !== undefined && (fromMs - last.fromMs < APPENDED_PART_MS || endOffset <= last.endOffset)) {
      last.endOffset = Math.max(last.endOffset, endOffset);
      last.toMs = Math.max(last.toMs, toMs);
      return;
    }
    this.parts.push({ offset: last?.endOffset ?? 0, endOffset, fromMs, toMs });
    if (this.parts.length > MAX_APPENDED_PARTS) this.parts = halved(this.parts);
  }

  /** Returns when the byte at `offset` came, at the earliest; `undefined` when nothing is known of it. */
  at(offset: number): number | undefined {
    return this.parts.findLast((part) => part.offset <= offset)?.fromMs;
  }

  /** Returns the end of what surely came at or before `atMs`. */
  before(atMs: number): number {
    return this.parts.findLast((part) => part.toMs <= atMs)?.endOffset ?? 0;
  }
}

function halved(parts: readonly AppendedPart[]): AppendedPart[] {
  const merged: AppendedPart[] = [];
  for (let index = 0; index < parts.length; index += 2) {
    const [first, second] = [parts[index], parts[index + 1]];
    if (first === undefined) break;
    merged.push(second === undefined ? first : { ...first, endOffset: second.endOffset, toMs: second.toMs });
  }
  return merged;
}

/**
 * Saves cursors until the state accepts them. The caller sends nothing meanwhile, so that a state that cannot
 * be written makes exports wait, rather than be sent twice after the next start. One write is under way at a time, and what
 * comes meanwhile shares the next: a database with several connections might do two writes in the wrong order.
 */
export class CursorSaver {
  private waiting = new Map<TraceId, ExportCursor>();
  private next: Promise<void> | undefined;
  private running: Promise<void> = Promise.resolve();
  private isFailing = false;

  constructor(
    private readonly destination: string,
    private readonly deps: {
      readonly cursors: Pick<CursorStore, 'save'>;
      readonly clock: Clock;
      readonly logger: Logger;
      readonly retryPolicy: RetryPolicy;
    },
    private readonly stop: AbortSignal,
  ) {}

  /** Resolves when they are saved, or when the worker stops. */
  save(cursors: readonly ExportCursor[]): Promise<void> {
    if (cursors.length === 0) return Promise.resolve();
    for (const cursor of cursors) this.waiting.set(cursor.traceId, cursor);
    this.next ??= this.running.then(() => this.saveWaiting());
    return this.next;
  }

  private saveWaiting(): Promise<void> {
    const cursors = [...this.waiting.values()];
    this.waiting = new Map();
    this.next = undefined;
    this.running = this.saveUntilTaken(cursors);
    return this.running;
  }

  private async saveUntilTaken(cursors: readonly ExportCursor[]): Promise<void> {
    const { cursors: store, clock, retryPolicy } = this.deps;
    const delayMs = (error: unknown, failedAttempts: number) => {
      this.report(error);
      return retryPolicy.delayMs(failedAttempts, null);
    };
    try {
      await retry(() => store.save(cursors), { clock, signal: this.stop, delayMs });
      this.isFailing = false;
    } catch (error) {
      if (!this.stop.aborted) throw error;
    }
  }

  private report(error: unknown): void {
    if (this.isFailing) return;
    this.isFailing = true;
    this.deps.logger.error(
      { destination: this.destination, error: reasonOf(error) },
      'failed to save export cursors; exports wait until it succeeds',
    );
  }
}
