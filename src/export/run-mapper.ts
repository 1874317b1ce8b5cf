import type { CellBatch } from '../otlp/wire/item-chunk.js';
import type { Resource } from '../record/attributes.js';
import type { RunSummary } from '../run/verdict.js';
import type { RunOrigin } from '../storage/trace-catalog.js';
import type { MappedItems } from './wire/item-window.js';

/** Whole lines of a record log as they stand there, all of one resource. Lent for the time of a call. */
export interface LoggedLines {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Each with its line break. */
  readonly lines: Uint8Array;
}

/** Items that were just appended to a record log, with their lines. Lent for the time of a call. */
export interface LoggedItems extends LoggedLines {
  readonly items: CellBatch;
}

/**
 * Maps one trace's records onto OTel spans, span events and log records. Holds state for one run and one set of
 * options; fed with the record log from its first byte (or replayed from there after a restart).
 */
export interface RunMapper {
  /**
   * Items anchored before these offsets of the log were sent: what later ones need of them is remembered, and the items
   * themselves need not be made. Called before the first push.
   */
  skipTo(tracesOffset: number, logsOffset: number): void;
  /**
   * Takes the next lines of the log; most are never made records of. The items are the same in whatever pieces the log is
   * pushed. Keeps nothing of the bytes.
   * @param maxSpans spans that are let go at a time: where more are due at a line, `stoppedAt` says so. Default: any number
   * @param maxSpans spans that are let go at a time: where more are due at a line, `stoppedAt` says so. Default: any number
   * @returns how many lines were no records; they are passed over.
   */
  pushLines(lines: LoggedLines, maxSpans?: number): number;
  /** Offset of the line at which the last push stopped, for more spans were due than it may let go: it goes on there. `undefined` where it took all. */
  readonly stoppedAt?: number | undefined;
  /** As `pushLines`, for items whose cells are still there. */
  pushItems(items: LoggedItems, maxSpans?: number): number;
  /** Sets the runs that the trace's commands belong to. */
  setOrigins?(origins: readonly RunOrigin[]): void;
  /** Whether a resource named an unknown step. */
  readonly lacksOrigin?: boolean;
  /**
   * What is ready: log records at once, spans once their hold for late events is over.
   * @param isQuiet the log has been read to its end and nothing was appended for the hold time: every held span is ready.
   * @param maxSpans so many of those at most; the next call goes on with the others. Default: all
   */
  take(isQuiet: boolean, maxSpans?: number): MappedItems;
  /**
   * The run has a verdict: every span still held, spans that never ended (marked unfinished), and a synthetic invocation
   * span where a trace has none. Their anchor is the log's length. Changes nothing else: the mapper may take later lines.
   */
  finish(run: RunSummary): MappedItems;
  /** Ids of the spans that `finish` would give beside those that are held. */
  closingSpanIds(run: RunSummary): readonly string[];
  /** Spans now held for late events; bounded. */
  readonly heldCount: number;
}
