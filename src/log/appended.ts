import type { TraceId } from '../record/ids.js';
import { CELL, type PageBatch } from '../record/record-page.js';
import type { Resource } from '../record/resource.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { LoggedRecord } from './record-log.js';

/** Consecutive records of one resource in a record log: their lines and metadata. */
export interface AppendedPiece {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Whole lines, with their line breaks. */
  readonly lines: Uint8Array;
  /** From rows of a page: these rows, each with all its lines. */
  readonly rows?: PageBatch;
  /** From records: these, and the length of each line in bytes. */
  readonly records?: readonly TelemetryRecord[];
  readonly lineBytes?: readonly number[];
}

/** The records of one trace that have just become durable, in the log's order. Its pieces are only valid during the call. */
export class Appended {
  /** @param lengthBytes length of the trace's record log after these records */
  constructor(
    readonly traceId: TraceId,
    readonly pieces: readonly AppendedPiece[],
    readonly lengthBytes: number,
    /** Releases the buffers of its pieces, after all listeners were notified. */
    readonly release: () => void = () => {},
  ) {}

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  /** Offset of the first record; the log's length if there is none. */
  get offset(): number {
    return this.pieces[0]?.offset ?? this.lengthBytes;
  }
}

/** A piece's records with their places. To keep, unlike the piece. */
export function loggedRecords(piece: AppendedPiece): readonly LoggedRecord[] {
  const { resource, rows } = piece;
  const logged: LoggedRecord[] = [];
  let { offset } = piece;
  const add = (record: TelemetryRecord, byteCount: number) => {
    logged.push({ record, resource, offset, endOffset: offset + byteCount });
    offset += byteCount;
  };
  if (rows !== undefined) {
    const { page, from, to } = rows;
    for (let row = from; row < to; row++) {
      const [first, second] = page.recordsOf(row);
      const endLine = page.cell(row, CELL.endLine);
      const last = page.cell(row, CELL.lineEnd) - endLine;
      if (first !== undefined) add(first, second === undefined ? last : endLine - page.cell(row, CELL.startLine));
      if (second !== undefined) add(second, last);
    }
  } else {
    const { records = [], lineBytes = [] } = piece;
    for (const [index, record] of records.entries()) add(record, lineBytes[index] ?? 0);
  }
  return logged;
}

/**
 * Is notified of durable records. Called synchronously after each append, in order; must not throw and must not wait. Its
 * argument is only valid during the call.
 */
export interface AppendListener {
  onAppended(appended: Appended): void;
}
