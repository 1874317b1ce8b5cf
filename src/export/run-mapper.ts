import type { AppendedPiece } from '../log/appended.js';
import { BRIDGE_ATTRIBUTE } from '../otlp/bridge-attributes.js';
import type { CellBatch } from '../otlp/wire/item-chunk.js';
import type { Resource } from '../record/attributes.js';
import { tryParseRecordLine } from '../record/record-line.js';
import type { RunSummary } from '../run/verdict.js';
import type { ExportCursor } from '../storage/cursor-store.js';
import type { Manifest } from '../storage/manifest.js';
import type { RunOrigin } from '../storage/trace-catalog.js';
import { ExportGroup } from './wire/export-group.js';
import { type ItemRange, type MappedItems, WindowWriter } from './wire/item-window.js';
import { encodeAttributes, LOG, RECORD } from './wire/wire-writer.js';

const LINE_BREAK = 0x0a;

/** Whole lines of a record log as they stand there, all of one resource. Lent for the time of a call. */
export interface LoggedLines {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Each with its line break. */
  readonly lines: Uint8Array;
  /** The same as items, of lines that were just appended and came as such. */
  readonly items?: CellBatch;
}

/**
 * Maps one trace's records onto OTel spans, span events and log records. Holds state for one run and one set of
 * options; fed with the record log from its first byte (or replayed from there after a restart).
 */
export interface RunMapper {
  /**
   * Items anchored before these offsets of the log were sent: what later ones need of them is remembered, and the items
   * themselves need not be made. Called before the first push.
   * @param finishedAtBytes length of the log with which the run was finished and sent to its end. Default: it was not
   */
  skipTo(tracesOffset: number, logsOffset: number, finishedAtBytes?: number): void;
  /**
   * Takes the next lines of the log; most are never made records of. The items are the same in whatever pieces the log is
   * pushed. Keeps nothing of the bytes.
   * @param maxSpans spans that are let go at a time: where more are due at a line, `stoppedAt` says so. Default: any number
   * @returns how many lines were no records; they are passed over.
   */
  pushLines(lines: LoggedLines, maxSpans?: number): number;
  /** Offset of the line at which the last push stopped, for more spans were due than it may let go: it goes on there. `undefined` where it took all. */
  readonly stoppedAt?: number | undefined;
  /** Sets the runs that the trace's commands belong to. */
  setOrigins?(origins: readonly RunOrigin[]): void;
  /** Sets what the run's nodes depend on. */
  setManifest?(manifest: Manifest): void;
  /** Whether a resource named an unknown step. */
  readonly lacksOrigin?: boolean;
  /**
   * Returns what is ready: log records at once, spans once they have waited for late events.
   * @param isQuiet the log has been read to its end and nothing was appended for the hold time: every buffered span is ready.
   * @param maxSpans so many of those at most; the next call goes on with the others. Default: all
   */
  take(isQuiet: boolean, maxSpans?: number): MappedItems;
  /**
   * The run has a verdict: every span still buffered, spans that never ended (marked unfinished), and a synthetic invocation
   * span where a trace has none. Their anchor is the log's length. Changes nothing else: the mapper may take later lines.
   */
  finish(run: RunSummary): MappedItems;
  /** Returns the ids of the spans that `finish` would give beside those that are buffered. */
  closingSpanIds(run: RunSummary): readonly string[];
  /** Spans now buffered for late events; bounded. */
  readonly bufferedCount: number;
}

const GROUP = new ExportGroup({}, { name: 'run-bridge' });

/** Maps nothing: each record is a log record that has its line as an attribute, and is sent as that line. */
export class JsonlRunMapper implements RunMapper {
  readonly bufferedCount = 0;
  private readonly windows = new WindowWriter();
  private firstOffset = 0;

  skipTo(_tracesOffset: number, logsOffset: number): void {
    this.firstOffset = logsOffset;
  }

  pushLines({ offset, lines }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    let damagedCount = 0;
    for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      end = lineBreak === -1 ? bytes.length : lineBreak;
      if (offset + start < this.firstOffset) continue;
      const line = bytes.toString('utf8', start, end);
      const record = tryParseRecordLine(line);
      if (record === undefined) damagedCount += 1;
      else this.write(line, record.traceId, offset + start);
    }
    return damagedCount;
  }

  take(): MappedItems {
    return this.windows.take();
  }

  /** What never ended has no line. */
  finish(): MappedItems {
    return this.windows.take();
  }

  closingSpanIds(): readonly string[] {
    return [];
  }

  private write(line: string, traceId: string, anchorOffset: number): void {
    const out = this.windows.begin();
    out.tag(RECORD);
    const start = out.open();
    encodeAttributes(out, LOG.attributes, { [BRIDGE_ATTRIBUTE.record]: line });
    out.tag(LOG.traceId);
    out.hex(traceId);
    out.close(start);
    this.windows.add('logs', GROUP, anchorOffset);
  }
}

/**
 * A mapper that reads a record log from its start, past what a cursor says was sent, and from there on gives what is new.
 * What was released then is released at the same offsets now, so that late events go where they went.
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
  /** Spans that replace others that were sent when the run was finished before. */
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
    mapper.skipTo(tracesOffset, logsOffset, finishedAtBytes ?? 0);
  }

  /**
   * Passes the runs of the trace's commands to the mapper; they are known shortly after its first records.
   * @returns the first of them, where they were passed now
   */
  async lookUpOrigins(find: () => Promise<readonly RunOrigin[]>): Promise<RunOrigin | undefined> {
    if (this.originCount > 0 && this.mapper.lacksOrigin !== true) return undefined;
    const origins = await find();
    if (origins.length === this.originCount) return undefined;
    this.originCount = origins.length;
    this.mapper.setOrigins?.(origins);
    return origins[0];
  }

  /** Whether the mapper makes anything of a manifest. */
  get takesManifest(): boolean {
    return this.mapper.setManifest !== undefined;
  }

  /** Passes what the run's nodes depend on to the mapper. */
  setManifest(manifest: Manifest): void {
    this.mapper.setManifest?.(manifest);
  }

  get bufferedCount(): number {
    return this.mapper.bufferedCount;
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
      given.push(this.onlyNew(this.passBoundary(limit)));
    }
    rest.every((piece) => this.pushPiece(piece, maxSpans));
    const ready = this.takeReady();
    if (given.length === 0) return ready;
    return {
      traces: [...given, ready].flatMap(({ traces }) => traces),
      logs: [...given, ready].flatMap(({ logs }) => logs),
    };
  }

  /** Returns whether it takes what is appended at an offset as it comes: everything before it was pushed, and nothing of it was sent before. */
  isAt(offset: number): boolean {
    return this.readOffset === offset && this.boundaries.length === 0 && this.mapper.lacksOrigin !== true;
  }

  /** Takes what was just appended, from the cells that it was appended by. @param maxSpans as for `pushLines` */
  pushAppended(pieces: readonly AppendedPiece[], maxSpans: number): void {
    pieces.every((piece) => this.pushPiece(piece, maxSpans));
  }

  /** Returns what became ready of what was pushed, and was not sent. */
  takeReady(): MappedItems {
    return this.onlyNew(this.mapper.take(false));
  }

  /** The log is read to its end and was quiet for the hold time: everything buffered is ready. @param maxSpans so many at most */
  takePending(maxSpans?: number): MappedItems {
    return this.onlyNew(this.mapper.take(true, maxSpans));
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
  private pushPiece(piece: LoggedLines, maxSpans: number | undefined): boolean {
    if (piece.lines.length === 0) return true;
    const { mapper } = this;
    this.damagedCount += mapper.pushLines(piece, maxSpans);
    const { stoppedAt } = mapper;
    this.readOffset = stoppedAt ?? piece.offset + piece.lines.length;
    return stoppedAt === undefined;
  }

  /** Returns whether the span that closes another one was not given before. */
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

  private onlyNew({ traces, logs }: MappedItems): MappedItems {
    const { tracesOffset, logsOffset } = this.cursor;
    return { traces: anchoredFrom(traces, tracesOffset), logs: anchoredFrom(logs, logsOffset) };
  }
}

function anchoredFrom(ranges: readonly ItemRange[], offset: number): readonly ItemRange[] {
  if (offset === 0) return ranges;
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
