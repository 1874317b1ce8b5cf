import type { Clock } from '../core/clock.js';
import type { AppendedPiece } from '../log/appended.js';
import type { CellBatch } from '../otlp/wire/item-chunk.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { ExportCursor } from '../storage/cursor-store.js';
import type { RunOrigin } from '../storage/trace-catalog.js';
import type { LoggedLines, RunMapper } from './run-mapper.js';
import type { ItemRange, MappedItems } from './wire/item-window.js';

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

  /**
   * Takes the next lines of the log and gives what became ready and was not sent.
   * @param maxSpans where more are due at a line, `readOffset` stays there, to be read on from. Default: any number
   */
  pushLines(pieces: readonly LoggedLines[], maxSpans?: number): MappedItems {
    const given: MappedItems[] = [];
    let rest = pieces;
    for (let boundary = this.boundaries[0]; boundary !== undefined; boundary = this.boundaries[0]) {
      const limit = boundary;
      const parts = rest.map((piece) => cutLines(piece, limit));
      const after = parts.map(([, part]) => part).filter(({ lines }) => lines.length > 0);
      if (after.length === 0) break;
      rest = [];
      if (!parts.every(([part]) => this.pushPiece(part, maxSpans))) break;
      rest = after;
      given.push(this.passBoundary(limit));
    }
    rest.every((piece) => this.pushPiece(piece, maxSpans));
    given.push(this.mapper.take(false));
    return this.onlyNew(given);
  }

  /** Whether it takes what is appended at an offset as it comes: everything before it was pushed, and nothing of it was sent before. */
  isAt(offset: number): boolean {
    return this.readOffset === offset && this.boundaries.length === 0 && this.mapper.lacksOrigin !== true;
  }

  /** Takes what was just appended, from the cells that it was appended by. @param maxSpans as for `pushLines` */
  pushAppended(pieces: readonly AppendedPiece[], maxSpans: number): void {
    pieces.every(({ resource, offset, lines, items }) => this.pushPiece({ resource, offset, lines }, maxSpans, items));
  }

  /** What became ready of what was pushed, and was not sent. */
  takeReady(): MappedItems {
    return this.onlyNew([this.mapper.take(false)]);
  }

  /** The log is read to its end and was quiet for the hold time: everything held is ready. @param maxSpans so many at most */
  takePending(maxSpans?: number): MappedItems {
    return this.onlyNew([this.mapper.take(true, maxSpans)]);
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

  /** @returns whether all of it was taken */
  private pushPiece(piece: LoggedLines, maxSpans: number | undefined, items?: CellBatch): boolean {
    if (piece.lines.length === 0) return true;
    const { mapper } = this;
    this.damagedCount +=
      items === undefined ? mapper.pushLines(piece, maxSpans) : mapper.pushItems({ ...piece, items }, maxSpans);
    const { stoppedAt } = mapper;
    this.readOffset = stoppedAt ?? piece.offset + piece.lines.length;
    return stoppedAt === undefined;
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
