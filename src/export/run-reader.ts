import { type Clock, pause } from '../core/clock.js';
import type { Appended } from '../log/appended.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { ExportCursor } from '../storage/cursor-store.js';
import type { RunOrigin } from '../storage/trace-catalog.js';
import type { ExportWorkerDeps } from './destination.js';
import type { ExportRun } from './export-run.js';
import { RunReplay } from './run-mapper.js';
import type { MappedItems } from './wire/item-window.js';

/** What a run gave when it was read. */
export interface Reading {
  readonly items: MappedItems;
  /** Length of the log, where these are the run's last items. */
  readonly closingAtBytes?: number;
  /** There is more to read at once. */
  readonly hasMore: boolean;
  /** Spans are buffered, and are let go when nothing is appended for so long. */
  readonly quietInMs?: number;
}

const NOTHING: Reading = { items: { traces: [], logs: [] }, hasMore: false };

/** How long a run's first items wait until it is known which run of which job they belong to, at most, in milliseconds … */
const ORIGIN_WAIT_MS = 2_000;
/** … and how often it is looked up until then. It is noted a moment after the first records. */
const ORIGIN_LOOK_MS = 50;

/** How long a run that is under way waits for what its nodes depend on, at most, and how long one that is over, in milliseconds. */
const MANIFEST_WAIT_MS = 500;
const MANIFEST_OVER_WAIT_MS = 5_000;

/** Records that were appended since so long are still in the memory of the system, in milliseconds. */
const LIVE_MS = 30_000;
/** What is appended at once is mapped in one go up to so many bytes, some 2,000 spans: more than that is read from the log in turns. */
const MAX_LIVE_BYTES = 4 * 1024 * 1024;
/** Buffered spans that are let go with it. */
const MAX_LIVE_SPANS = 2_048;
/** So much of a log is mapped while it is not known yet which run of which job its items belong to. */
const MAX_UNNAMED_BYTES = 16 * 1024 * 1024;
/** What is mapped in a turn, in bytes of a log. */
const MIN_PIECE_BYTES = 32 * 1024;
const MAX_PIECE_BYTES = 256 * 1024;
/** A turn that takes longer makes the next one smaller, one that takes less makes it larger; in milliseconds. */
const LONG_TURN_MS = 8;
const SHORT_TURN_MS = 3;
/** A buffered span that is let go counts as so many bytes of a log. */
const BUFFERED_SPAN_BYTES = 256;

/** The first links of the chain: reads a run's record log on from where its mapper stands, a bounded piece at a time, and maps it. */
export class RunReader {
  private readonly finished: FinishedReplays;
  /** How much is mapped in a turn: some milliseconds of work, and little while the code is not compiled yet. */
  private pieceBytes = MIN_PIECE_BYTES;

  /** @param eventHoldMs how long spans are buffered for events that come after them, once their run is quiet. */
  constructor(
    private readonly eventHoldMs: number,
    private readonly deps: ExportWorkerDeps,
  ) {
    this.finished = new FinishedReplays(deps.clock);
  }

  /**
   * Reads on.
   * @param isFlushing buffered spans are let go at once.
   * @returns `undefined` where the destination is not to get the run, or got all of it.
   */
  async read(run: ExportRun, isFlushing: boolean): Promise<Reading | undefined> {
    const cursor = (run.isLoaded ? run.cursor : undefined) ?? (await this.load(run));
    if (cursor === undefined || cursor.finishedAtBytes === run.knownBytes) return undefined;
    if ((run.replay === undefined || run.isUnnamed) && !isFlushing && (await this.isTooEarly(run)))
      return { ...NOTHING, quietInMs: ORIGIN_LOOK_MS };
    const replay = run.replay === undefined || run.canCatchUp ? await this.open(run, cursor) : run.replay;
    // Its last items are under way: whether more came is seen when they are answered.
    if (run.closingAtBytes !== undefined) return NOTHING;
    const { origins } = this.deps;
    const origin = origins && (await replay.lookUpOrigins(() => origins.originsOf(run.traceId)));
    if (origin !== undefined) await this.lookUpManifest(run, replay, origin);
    if (run.isUnnamed) {
      run.isUnnamed = false;
      return { items: replay.takeReady(), hasMore: true };
    }
    run.isReading = true;
    try {
      return await (replay.readOffset < run.knownBytes
        ? this.readAppended(run, replay)
        : this.readEnd(run, replay, isFlushing));
    } finally {
      run.isReading = false;
    }
  }

  /**
   * Live: maps what was just appended from the cells that it was appended by. One that lags, is new to the destination, or has to look something up
   * reads it from its log instead.
   * @param mayOpen whether a run whose log begins with this may be opened
   * @returns what became ready; `undefined` where it was not taken
   */
  takeLive(run: ExportRun, appended: Appended, mayOpen: boolean): MappedItems | undefined {
    const { offset, lengthBytes, pieces } = appended;
    if (lengthBytes - offset > MAX_LIVE_BYTES) return undefined;
    const replay = run.replay ?? (mayOpen && offset === 0 ? this.openAtStart(run) : undefined);
    if (replay === undefined || run.isReading || !replay.isAt(offset)) return undefined;
    if (run.closingAtBytes !== undefined || run.isEvicted || run.failedTurns > 0) return undefined;
    if (run.isUnnamed && offset > MAX_UNNAMED_BYTES) return undefined;
    replay.pushAppended(pieces, MAX_LIVE_SPANS);
    return run.isUnnamed ? NOTHING.items : replay.takeReady();
  }

  /** Opens a run that nothing was known of before. @returns `undefined` where that takes longer */
  private openAtStart(run: ExportRun): RunReplay | undefined {
    if (run.cursor !== undefined || run.isInTurn) return undefined;
    const mapper = this.deps.createMapperNow?.();
    if (mapper === undefined) return undefined;
    const { destination, origins } = this.deps;
    const { traceId } = run;
    const cursor = { destination: destination.name, traceId, tracesOffset: 0, logsOffset: 0, finishedAtBytes: null };
    run.isLoaded = true;
    run.cursor = cursor;
    const replay = new RunReplay(mapper, cursor, undefined);
    run.open(replay, cursor);
    run.isUnnamed = origins !== undefined;
    return replay;
  }

  /** Finds a run's cursor, from the state; `undefined` where the destination is not to get the run. */
  async load(run: ExportRun): Promise<ExportCursor | undefined> {
    const { cursors, destination, reader, runs } = this.deps;
    const { traceId } = run;
    const found = run.cursor ?? (await cursors.find(destination.name, traceId));
    if (found === undefined && !(await cursors.isWanted(destination.name, traceId))) return undefined;
    const foreseenBytes = run.knownBytes;
    const lengthBytes = await reader.lengthBytes(traceId);
    // A log that is not synced may have lost its end in a power cut; one without any length is not there yet.
    const isOnDisk = lengthBytes > 0 && run.knownBytes === foreseenBytes;
    run.knownBytes = isOnDisk ? lengthBytes : Math.max(run.knownBytes, lengthBytes);
    const sentTo = (offset = 0) => (isOnDisk ? Math.min(offset, lengthBytes) : offset);
    if (run.finished === undefined) {
      const summary = await runs.find(traceId);
      if (summary?.state === 'finished') run.finished ??= summary;
    }
    run.isLoaded = true;
    run.cursor = {
      destination: destination.name,
      traceId,
      tracesOffset: sentTo(found?.tracesOffset),
      logsOffset: sentTo(found?.logsOffset),
      finishedAtBytes: found?.finishedAtBytes ?? null,
    };
    return run.cursor;
  }

  /** A run was sent to its end: what its mapper knows is kept for a while, for records that come late. */
  keep(traceId: TraceId, replay: RunReplay, memoryBytes: number): void {
    this.finished.keep(traceId, replay, memoryBytes);
  }

  /** Nothing of a run is kept. */
  drop(traceId: TraceId): void {
    this.finished.drop(traceId);
  }

  /** Returns whether it is not known yet which run of which job its items belong to, and will be in a moment. */
  private async isTooEarly({ traceId, heardMs, finished }: ExportRun): Promise<boolean> {
    const { origins, clock } = this.deps;
    if (origins === undefined || finished !== undefined || clock.monotonicMs() - heardMs >= ORIGIN_WAIT_MS)
      return false;
    return (await origins.originsOf(traceId)).length === 0;
  }

  /** Finds what the run's nodes depend on. Where that takes long, the run goes on without, until it is known. */
  private async lookUpManifest({ finished }: ExportRun, replay: RunReplay, origin: RunOrigin): Promise<void> {
    const { manifests, clock } = this.deps;
    if (manifests === undefined || !replay.takesManifest) return;
    const known = manifests.of(origin).then((manifest) => {
      if (manifest !== undefined) replay.setManifest(manifest);
    });
    const waiting = new AbortController();
    const waitMs = finished === undefined ? MANIFEST_WAIT_MS : MANIFEST_OVER_WAIT_MS;
    await Promise.race([known, pause(clock, waitMs, waiting.signal)]);
    waiting.abort();
  }

  private async open(run: ExportRun, cursor: ExportCursor): Promise<RunReplay> {
    run.close();
    const kept = this.finished.take(run.traceId, cursor);
    const summary = kept !== undefined || cursor.finishedAtBytes === null ? undefined : await this.findSummary(run);
    const replay = kept ?? new RunReplay(await this.deps.createMapper(), cursor, summary);
    run.open(replay, cursor);
    return replay;
  }

  private async findSummary(run: ExportRun): Promise<RunSummary | undefined> {
    return run.finished ?? (await this.deps.runs.find(run.traceId));
  }

  /**
   * Reads what was appended. Live or lagging: where a run keeps up, that came a moment ago and stands in the system's memory; where it lags, the disk
   * has it, for which nobody else is to wait. At the end of what was known one more reading sees whether the run is finished, or its spans are to
   * be let go.
   */
  private async readAppended(run: ExportRun, replay: RunReplay): Promise<Reading> {
    const { traceId, knownBytes: toOffset } = run;
    const { readOffset: fromOffset, damagedCount } = replay;
    const atMs = run.times.at(fromOffset);
    const isLive = atMs !== undefined && this.deps.clock.monotonicMs() - atMs < LIVE_MS;
    // Not beyond what is known to be durable.
    const stretch = { fromOffset, toOffset, maxBytes: this.pieceBytes, isLive };
    const items = await this.deps.lines.read(traceId, stretch, (lines) => {
      if (lines.length > 0) return this.inTime(() => replay.pushLines(lines, this.maxSpans));
      throw new Error(`the record log has ${fromOffset} bytes where ${toOffset} were expected; was it cut or removed?`);
    });
    const lines = replay.damagedCount - damagedCount;
    if (lines > 0) this.deps.logger.warn({ traceId, lines }, 'skipped damaged lines of a record log');
    return { items, hasMore: true };
  }

  private readEnd(run: ExportRun, replay: RunReplay, isFlushing: boolean): Reading {
    const { finished } = run;
    const isFinished = finished?.logBytes === replay.readOffset;
    if (isFinished && replay.bufferedCount <= this.maxSpans) {
      return { items: replay.finish(finished), closingAtBytes: finished.logBytes, hasMore: false };
    }
    if (replay.bufferedCount === 0) return NOTHING;
    const quietInMs = run.lastAppendMs + this.eventHoldMs - this.deps.clock.monotonicMs();
    if (!isFinished && !isFlushing && quietInMs > 0) return { ...NOTHING, quietInMs };
    return { items: this.inTime(() => replay.takePending(this.maxSpans)), hasMore: replay.bufferedCount > 0 };
  }

  /** Returns how many buffered spans are let go in a turn. */
  private get maxSpans(): number {
    return this.pieceBytes / BUFFERED_SPAN_BYTES;
  }

  /** Does a turn's work, and decides by how long it takes how much the next one does. */
  private inTime<Result>(work: () => Result): Result {
    const { clock } = this.deps;
    const startMs = clock.monotonicMs();
    const result = work();
    const tookMs = clock.monotonicMs() - startMs;
    if (tookMs > LONG_TURN_MS) this.pieceBytes = Math.max(MIN_PIECE_BYTES, this.pieceBytes / 2);
    else if (tookMs < SHORT_TURN_MS) this.pieceBytes = Math.min(MAX_PIECE_BYTES, this.pieceBytes * 2);
    return result;
  }
}

/** How long a run that was sent to its end is remembered, in milliseconds: 10 minutes. */
const KEPT_MS = 600_000;
/** Runs that are remembered, and the memory that they may take together, as estimated, in bytes. */
const MAX_RUNS = 8;
const MAX_BYTES = 16 * 1024 * 1024;

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
