import type { Clock, Timer } from '../core/clock.js';
import type { Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { ExportCursor } from '../storage/cursor-store.js';
import type { RunOrigin } from '../storage/trace-catalog.js';
import type { ExportWorkerDeps } from './export-worker-options.js';
import type { LoggedLines, RunMapper } from './run-mapper.js';
import { SignalProgress, type SignalQueue } from './signal-queue.js';
import type { ItemRange, MappedItems } from './wire/item-window.js';

/** Maximum number of runs with a mapper. */
export interface RunScheduleLimits {
  readonly maxOpenRuns: number;
  /** Memory of all open runs together, as `ExportRun` estimates it; a single one may take more. */
  readonly maxOpenBytes: number;
  readonly openSliceMs: number;
}

/** Open runs beyond this much memory, in bytes, are closed once they had nothing to do for a while … */
const MAX_IDLE_BYTES = 64 * 1024 * 1024;
/** … of so many milliseconds: those that get records every now and then do not read their log again for each. */
const IDLE_MS = 5_000;

/**
 * Schedules runs, and decides which of them have a mapper. Open runs take turns; closed ones wait, first come first served, until a
 * mapper is free: fewer are open than may be, an open one has nothing to do or cannot go on, or one has had its slice of
 * time. A run that is evicted comes to the end of the line, if there is more to do for it.
 */
export class RunSchedule {
  /** Runs with a mapper, and the bytes that each took at the last check. */
  private readonly open = new Map<ExportRun, number>();
  private openBytes = 0;
  private readonly turns = new Set<ExportRun>();
  private readonly backlog = new Set<ExportRun>();

  constructor(private readonly limits: RunScheduleLimits) {}

  get isEmpty(): boolean {
    return this.turns.size === 0 && this.backlog.size === 0;
  }

  /** A run waits for a turn; once, however often this is called. */
  add(run: ExportRun): void {
    if (this.isWaiting(run)) return;
    (run.replay === undefined ? this.backlog : this.turns).add(run);
  }

  /** Removes and returns the next run to work on; a closed one is opened by that. */
  next(nowMs: number): ExportRun | undefined {
    const line = this.backlog.size > 0 && this.makeRoom(nowMs) ? this.backlog : this.turns;
    const [run] = line;
    if (run !== undefined) line.delete(run);
    return run;
  }

  /** A run has worked: its memory has changed. If it is too much, others are closed. */
  hadTurn(run: ExportRun, nowMs: number): void {
    run.lastTurnMs = nowMs;
    if (run.replay === undefined) this.closed(run);
    else this.measure(run);
    this.closeIdle(run, nowMs);
    while (this.openBytes > this.limits.maxOpenBytes) {
      const victim = this.victim(run) ?? this.longestPending(run);
      if (victim === undefined) return;
      this.evict(victim);
    }
  }

  /** A run has no mapper any more. */
  closed(run: ExportRun): void {
    this.openBytes -= this.open.get(run) ?? 0;
    this.open.delete(run);
  }

  /** A run waits for no turn any more. */
  remove(run: ExportRun): void {
    this.closed(run);
    this.turns.delete(run);
    this.backlog.delete(run);
  }

  private isWaiting(run: ExportRun): boolean {
    return this.turns.has(run) || this.backlog.has(run);
  }

  private measure(run: ExportRun): void {
    const bytes = run.memoryBytes;
    this.openBytes += bytes - (this.open.get(run) ?? 0);
    this.open.set(run, bytes);
  }

  private get isFull(): boolean {
    if (this.open.size === 0) return false;
    return this.open.size >= this.limits.maxOpenRuns || this.openBytes >= this.limits.maxOpenBytes;
  }

  private makeRoom(nowMs: number): boolean {
    if (!this.isFull) return true;
    const victim = this.victim();
    if (victim !== undefined) {
      this.evict(victim);
      return true;
    }
    // The slice begins with the first batch that was taken, or a run whose replay takes longer would never get anywhere.
    const [next] = this.turns;
    if (next?.progressMs === undefined || nowMs - next.progressMs < this.limits.openSliceMs) return false;
    this.turns.delete(next);
    next.isBehind = true;
    this.evict(next);
    return true;
  }

  /** Closes a run for the sake of others. What it was about to do, it does when it is its turn again. */
  private evict(run: ExportRun): void {
    run.isBehind ||= (run.replay?.heldCount ?? 0) > 0;
    run.evict();
    this.closed(run);
    if (run.isBehind || run.isEvicted) this.add(run);
  }

  private closeIdle(except: ExportRun, nowMs: number): void {
    while (this.openBytes > MAX_IDLE_BYTES) {
      const idle = this.longestIdle(except);
      if (idle === undefined || nowMs - idle.lastTurnMs < IDLE_MS) return;
      this.evict(idle);
    }
  }

  /** An open run that can be closed at no loss of work: one with nothing to do, else one that cannot go on. */
  private victim(except?: ExportRun): ExportRun | undefined {
    const idle = this.longestIdle(except);
    if (idle !== undefined) return idle;
    for (const run of this.open.keys()) if (run !== except && !this.isWaiting(run) && run.isStuck) return run;
    return undefined;
  }

  /** The open run that has had nothing to do for the longest time. */
  private longestIdle(except?: ExportRun): ExportRun | undefined {
    return this.longest((run) => run !== except && !run.isStuck && run.replay?.heldCount === 0);
  }

  /** An open run that only waits for its held spans' time: it reads its log again then. */
  private longestPending(except: ExportRun): ExportRun | undefined {
    return this.longest((run) => run !== except);
  }

  private longest(mayGo: (run: ExportRun) => boolean): ExportRun | undefined {
    let found: ExportRun | undefined;
    for (const run of this.open.keys()) {
      // One that was sent to its end is closed as soon as its cursor is saved.
      if (this.isWaiting(run) || run.isBehind || run.isOutstanding || run.closingAtBytes !== undefined) continue;
      if (!mayGo(run)) continue;
      if (run.lastTurnMs < (found?.lastTurnMs ?? Infinity)) found = run;
    }
    return found;
  }
}

const LINE_BREAK = 0x0a;

/**
 * A mapper that reads a record log from its start, past what a cursor says was sent, and from there on gives what is new.
 * What was released then is released at the same places now, so that late events go where they went.
 */
export class RunReplay {
  /** Offset up to which lines were pushed. */
  readOffset = 0;
  /** Lines that were no records. */
  damagedCount = 0;
  /** How many steps of runs the mapper knows. */
  private originCount = 0;
  /** Offsets at which everything pending was sent, ascending. */
  private readonly boundaries: number[];
  /** Spans in the place of others that were sent when the run was finished before. */
  private readonly closedSpanIds = new Set<string>();

  /**
   * @param cursor what was sent; items anchored before it are passed over.
   * @param summary the run as it is known, for a run that was finished before.
   */
  constructor(
    private readonly mapper: RunMapper,
    private readonly cursor: ExportCursor,
    private readonly summary: RunSummary | undefined,
  ) {
    const { tracesOffset, logsOffset, finishedAtBytes } = cursor;
    this.boundaries = [finishedAtBytes ?? 0, tracesOffset].filter((offset) => offset > 0).sort((a, b) => a - b);
    mapper.skipTo(tracesOffset, logsOffset);
  }

  /** Passes the runs of the trace's commands to the mapper; they are known shortly after its first records. */
  async lookUpOrigins(find: () => Promise<readonly RunOrigin[]>): Promise<void> {
    if (this.originCount > 0 && this.mapper.lacksOrigin !== true) return;
    const origins = await find();
    if (origins.length === this.originCount) return;
    this.originCount = origins.length;
    this.mapper.setOrigins?.(origins);
  }

  get heldCount(): number {
    return this.mapper.heldCount;
  }

  /** Takes the next lines of the log and gives what became ready and was not sent. */
  pushLines(pieces: readonly LoggedLines[]): MappedItems {
    const given: MappedItems[] = [];
    let rest = pieces;
    for (let boundary = this.boundaries[0]; boundary !== undefined; boundary = this.boundaries[0]) {
      const limit = boundary;
      const parts = rest.map((piece) => cutLines(piece, limit));
      const after = parts.map(([, part]) => part).filter(({ lines }) => lines.length > 0);
      if (after.length === 0) break;
      for (const [part] of parts) this.pushPiece(part);
      rest = after;
      given.push(this.passBoundary(limit));
    }
    for (const piece of rest) this.pushPiece(piece);
    given.push(this.mapper.take(false));
    return this.onlyNew(given);
  }

  /** The log is read to its end and was quiet for the hold time: everything held is ready. */
  takePending(): MappedItems {
    return this.onlyNew([this.mapper.take(true)]);
  }

  /** The run is finished at the offset up to which the log was read. It may still grow, and be finished again. */
  finish(run: RunSummary): MappedItems {
    const pending = this.takePending();
    for (let boundary = this.boundaries[0]; boundary !== undefined; boundary = this.boundaries[0])
      this.passBoundary(boundary);
    const { traces, logs } = this.mapper.finish(run);
    const closing: ItemRange[] = [];
    for (const range of traces) range.pick((index) => this.isFirstClosing(range.window.spanIdOf(index)), closing);
    return { traces: [...pending.traces, ...closing], logs: [...pending.logs, ...logs] };
  }

  private pushPiece(piece: LoggedLines): void {
    if (piece.lines.length === 0) return;
    this.damagedCount += this.mapper.pushLines(piece);
    this.readOffset = piece.offset + piece.lines.length;
  }

  /** Whether the span that closes another one was not given before. */
  private isFirstClosing(spanId: string): boolean {
    if (this.closedSpanIds.has(spanId)) return false;
    this.closedSpanIds.add(spanId);
    return true;
  }

  private passBoundary(boundary: number): MappedItems {
    this.boundaries.shift();
    const items = this.mapper.take(true);
    if (this.summary !== undefined && boundary === this.cursor.finishedAtBytes) {
      for (const spanId of this.mapper.closingSpanIds(this.summary)) this.closedSpanIds.add(spanId);
    }
    return items;
  }

  private onlyNew(given: readonly MappedItems[]): MappedItems {
    const { tracesOffset, logsOffset } = this.cursor;
    return {
      traces: given.flatMap(({ traces }) => anchoredFrom(traces, tracesOffset)),
      logs: given.flatMap(({ logs }) => anchoredFrom(logs, logsOffset)),
    };
  }
}

function anchoredFrom(ranges: readonly ItemRange[], offset: number): readonly ItemRange[] {
  return ranges.flatMap((range) => range.anchoredFrom(offset) ?? []);
}

/** Cuts lines in two: those that begin before an offset of the log, and the others. Either part may be empty. */
export function cutLines(whole: LoggedLines, atOffset: number): readonly [LoggedLines, LoggedLines] {
  const { resource, offset, lines } = whole;
  // The first line that begins at the offset or behind it, which need not be where a line begins.
  const from = atOffset - offset - 1;
  const lineBreak = from < 0 ? -1 : lines.indexOf(LINE_BREAK, from);
  const cut = from < 0 ? 0 : lineBreak === -1 ? lines.length : lineBreak + 1;
  return [
    { resource, offset, lines: lines.subarray(0, cut) },
    { resource, offset: offset + cut, lines: lines.subarray(cut) },
  ];
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

/** What an open run takes at least, in bytes: a block for lines and one for items. */
const OPEN_RUN_BYTES = 512 * 1024;
/** What a mapper remembers of each byte it has read: ids, parents and names of spans. Measured with lines of 1 KB. */
const REMEMBERED_PART = 1 / 6;
/** A mapper's memory of spans is bounded, so that more than this part of a log changes nothing, in bytes. */
const MAX_REMEMBERED_BYTES = 256 * 1024 * 1024;
/** A span that is held with its attributes, in bytes. */
const HELD_SPAN_BYTES = 1_536;

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

  /** Whether something of it waits for a request or an answer. */
  get isOutstanding(): boolean {
    return this.progress.traces.isOutstanding || this.progress.logs.isOutstanding;
  }

  /** Whether items were evicted, which a new replay has to find. */
  get isEvicted(): boolean {
    return this.progress.traces.isEvicted || this.progress.logs.isEvicted;
  }

  /** Whether items were evicted of a signal that waits for nothing now: a new replay brings it further. */
  get canCatchUp(): boolean {
    return this.progress.traces.canCatchUp || this.progress.logs.canCatchUp;
  }

  /** Whether something of it waits for a destination that takes nothing now. */
  get isStuck(): boolean {
    return this.progress.traces.isStuck || this.progress.logs.isStuck;
  }

  /** Bytes of the log of which not everything was sent. Held spans count from the first that is held. */
  get lagBytes(): number {
    this.noteSettled();
    return Math.max(0, this.knownBytes - this.settledBytes);
  }

  /** About how much memory it takes while it is open, in bytes. */
  get memoryBytes(): number {
    if (this.replay === undefined) return 0;
    const remembered = Math.min(this.replay.readOffset, MAX_REMEMBERED_BYTES) * REMEMBERED_PART;
    return OPEN_RUN_BYTES + remembered + this.replay.heldCount * HELD_SPAN_BYTES;
  }

  /** Begins to read at a cursor. */
  open(replay: RunReplay, { tracesOffset, logsOffset }: ExportCursor): void {
    this.replay = replay;
    this.progress.traces.open(tracesOffset);
    this.progress.logs.open(logsOffset);
  }

  /** Takes what the mapper gave. @param closingAtBytes length of the log, for a run's last items. */
  enqueue({ traces, logs }: MappedItems, closingAtBytes?: number): void {
    this.closingAtBytes ??= closingAtBytes;
    this.progress.traces.enqueue(traces, closingAtBytes);
    this.progress.logs.enqueue(logs, closingAtBytes);
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
    else if (this.replay.heldCount > 0) ends.push(this.cursor.tracesOffset);
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

  /** When the byte at `offset` came, at the earliest; `undefined` when nothing is known of it. */
  at(offset: number): number | undefined {
    return this.parts.findLast((part) => part.offset <= offset)?.fromMs;
  }

  /** The end of what surely came at or before `atMs`. */
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

/** What a run gave when it was read. */
export interface Reading {
  readonly items: MappedItems;
  /** Length of the log, where these are the run's last items. */
  readonly closingAtBytes?: number;
  /** There is more to read at once. */
  readonly hasMore: boolean;
  /** Spans are held, and are let go when nothing is appended for so long. */
  readonly quietInMs?: number;
}

const NOTHING: Reading = { items: { traces: [], logs: [] }, hasMore: false };

/** How long a run's first items wait until it is known which run of which job they belong to, at most, in milliseconds … */
const ORIGIN_WAIT_MS = 2_000;
/** … and how often it is looked up until then. It is noted a moment after the first records. */
const ORIGIN_LOOK_MS = 50;

/** The first links of the chain: reads a run's record log on from where its mapper stands, about 1 MiB at a time, and maps it. */
export class RunReader {
  private readonly finished: FinishedReplays;

  /** @param eventHoldMs how long spans are held for events that come after them, once their run is quiet. */
  constructor(
    private readonly eventHoldMs: number,
    private readonly deps: ExportWorkerDeps,
  ) {
    this.finished = new FinishedReplays(deps.clock);
  }

  /**
   * Reads on.
   * @param isFlushing held spans are let go at once.
   * @returns `undefined` where the destination is not to get the run, or got all of it.
   */
  async read(run: ExportRun, isFlushing: boolean): Promise<Reading | undefined> {
    const cursor = (run.isLoaded ? run.cursor : undefined) ?? (await this.load(run));
    if (cursor === undefined || cursor.finishedAtBytes === run.knownBytes) return undefined;
    if (run.replay === undefined && !isFlushing && (await this.isTooEarly(run)))
      return { ...NOTHING, quietInMs: ORIGIN_LOOK_MS };
    const replay = run.replay === undefined || run.canCatchUp ? await this.open(run, cursor) : run.replay;
    // Its last items are under way: whether more came is seen when they are answered.
    if (run.closingAtBytes !== undefined) return NOTHING;
    const { origins } = this.deps;
    if (origins !== undefined) await replay.lookUpOrigins(() => origins.originsOf(run.traceId));
    return replay.readOffset < run.knownBytes ? this.readLines(run, replay) : this.readEnd(run, replay, isFlushing);
  }

  /** A run's cursor, from the state; `undefined` where the destination is not to get the run. */
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

  /** Whether it is not known yet which run of which job its items belong to, and will be in a moment. */
  private async isTooEarly({ traceId, heardMs, finished }: ExportRun): Promise<boolean> {
    const { origins, clock } = this.deps;
    if (origins === undefined || finished !== undefined || clock.monotonicMs() - heardMs >= ORIGIN_WAIT_MS)
      return false;
    return (await origins.originsOf(traceId)).length === 0;
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

  /** At the end of what was known one more reading sees whether the run is finished, or its spans are to be let go. */
  private async readLines({ traceId, knownBytes }: ExportRun, replay: RunReplay): Promise<Reading> {
    const { readOffset, damagedCount } = replay;
    // Not beyond what is known to be durable.
    const items = await this.deps.lines.read(traceId, readOffset, knownBytes, (lines) => {
      if (lines.length > 0) return replay.pushLines(lines);
      throw new Error(
        `the record log has ${readOffset} bytes where ${knownBytes} were expected; was it cut or removed?`,
      );
    });
    const lines = replay.damagedCount - damagedCount;
    if (lines > 0) this.deps.logger.warn({ traceId, lines }, 'skipped damaged lines of a record log');
    return { items, hasMore: true };
  }

  private readEnd(run: ExportRun, replay: RunReplay, isFlushing: boolean): Reading {
    const { finished } = run;
    if (finished?.logBytes === replay.readOffset) {
      return { items: replay.finish(finished), closingAtBytes: finished.logBytes, hasMore: false };
    }
    if (replay.heldCount === 0) return NOTHING;
    const quietInMs = run.lastAppendMs + this.eventHoldMs - this.deps.clock.monotonicMs();
    return isFlushing || quietInMs <= 0 ? { items: replay.takePending(), hasMore: false } : { ...NOTHING, quietInMs };
  }
}
