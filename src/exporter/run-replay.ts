import type { Signal } from '../record/record-batch.js';
import type { RunSummary } from '../run/run-summary.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { RunOrigin } from '../store/trace-catalog.js';
import { cutLines, type LoggedLines } from './logged-lines.js';
import type { MappedItem } from './mapped-item.js';
import type { RunMapper } from './run-mapper.js';

/**
 * A mapper that reads a record log from its start, past what a cursor says was sent, and from there on gives what is new.
 * What was released then is released at the same places now, so that late events go where they went.
 */
export class RunReplay {
  /** Offset up to which lines were pushed. */
  readOffset = 0;
  /** Lines that were no records. */
  damagedCount = 0;
  /** Places at which everything held was sent, ascending. */
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
    mapper.passOver(tracesOffset, logsOffset);
  }

  /** Tells which runs the trace's commands belong to. */
  setOrigins(origins: readonly RunOrigin[]): void {
    this.mapper.setOrigins?.(origins);
  }

  /** Whether telemetry was mapped of which nobody said to what run it belongs. */
  get lacksOrigin(): boolean {
    return this.mapper.lacksOrigin ?? false;
  }

  get heldCount(): number {
    return this.mapper.heldCount;
  }

  /** Takes the next lines of the log and gives what became ready and was not sent. */
  pushLines(pieces: readonly LoggedLines[]): readonly MappedItem[] {
    const items: MappedItem[] = [];
    let rest = pieces;
    for (let boundary = this.boundaries[0]; boundary !== undefined; boundary = this.boundaries[0]) {
      const limit = boundary;
      const parts = rest.map((piece) => cutLines(piece, limit));
      const after = parts.map(([, part]) => part).filter(({ lines }) => lines.length > 0);
      if (after.length === 0) break;
      for (const [part] of parts) this.pushPiece(part);
      rest = after;
      for (const item of this.passBoundary(limit)) items.push(item);
    }
    for (const piece of rest) this.pushPiece(piece);
    for (const item of this.mapper.take(false)) items.push(item);
    return this.onlyNew(items);
  }

  /** The log is read to its end and was quiet for the hold time: everything held is ready. */
  takeHeld(): readonly MappedItem[] {
    return this.onlyNew(this.mapper.take(true));
  }

  /** The run is finished at the place where the log was read to. It may still grow, and be finished again. */
  finish(run: RunSummary): readonly MappedItem[] {
    const items = [...this.takeHeld()];
    for (let boundary = this.boundaries[0]; boundary !== undefined; boundary = this.boundaries[0])
      this.passBoundary(boundary);
    for (const item of this.mapper.finish(run)) {
      const spanId = item.signal === 'traces' ? item.span.spanContext().spanId : null;
      if (spanId !== null && this.closedSpanIds.has(spanId)) continue;
      if (spanId !== null) this.closedSpanIds.add(spanId);
      items.push(item);
    }
    return items;
  }

  private pushPiece(piece: LoggedLines): void {
    if (piece.lines.length === 0) return;
    this.damagedCount += this.mapper.pushLines(piece);
    this.readOffset = piece.offset + piece.lines.length;
  }

  private passBoundary(boundary: number): readonly MappedItem[] {
    this.boundaries.shift();
    const items = this.mapper.take(true);
    if (this.summary !== undefined && boundary === this.cursor.finishedAtBytes) {
      for (const spanId of this.mapper.closingSpanIds(this.summary)) this.closedSpanIds.add(spanId);
    }
    return items;
  }

  private onlyNew(items: readonly MappedItem[]): readonly MappedItem[] {
    return items.filter((item) => item.anchorOffset >= this.offsetOf(item.signal));
  }

  private offsetOf(signal: Signal): number {
    return signal === 'traces' ? this.cursor.tracesOffset : this.cursor.logsOffset;
  }
}
