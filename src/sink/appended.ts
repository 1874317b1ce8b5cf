import type { TraceId } from '../record/ids.js';
import type { Resource } from '../record/resource.js';
import type { SpanBatch } from '../record/span-batch.js';
import { CELL } from '../record/span-page.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { LoggedRecord } from './record-log.js';

/** Records of one resource that stand side by side in a record log: their lines, and what else is known of them. */
export interface AppendedPiece {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Whole lines, with their line breaks. */
  readonly lines: Uint8Array;
  /** Where they came as spans of a page: just these spans, each with both its lines. */
  readonly spans?: SpanBatch;
  /** Where they came as records: these, and the length of each one's line in bytes. */
  readonly records?: readonly TelemetryRecord[];
  readonly lineBytes?: readonly number[];
}

/** What has just become durable, all of one trace, in the log's order. Its pieces are lent for the time of the call. */
export class Appended {
  /** @param lengthBytes length of the trace's record log after these records */
  constructor(
    readonly traceId: TraceId,
    readonly pieces: readonly AppendedPiece[],
    readonly lengthBytes: number,
  ) {}

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  /** Offset of the first record; the log's length where there is none. */
  get offset(): number {
    return this.pieces[0]?.offset ?? this.lengthBytes;
  }
}

/** A piece's records with their places. To keep, unlike the piece. */
export function loggedRecords(piece: AppendedPiece): readonly LoggedRecord[] {
  const { resource, spans } = piece;
  const logged: LoggedRecord[] = [];
  let { offset } = piece;
  const add = (record: TelemetryRecord, byteCount: number) => {
    logged.push({ record, resource, offset, endOffset: offset + byteCount });
    offset += byteCount;
  };
  if (spans !== undefined) {
    const { page, from, to } = spans;
    for (let span = from; span < to; span++) {
      const [start, end] = page.recordsOf(span);
      add(start, page.cell(span, CELL.endLine) - page.cell(span, CELL.startLine));
      add(end, page.cell(span, CELL.lineEnd) - page.cell(span, CELL.endLine));
    }
  } else {
    const { records = [], lineBytes = [] } = piece;
    for (const [index, record] of records.entries()) add(record, lineBytes[index] ?? 0);
  }
  return logged;
}

/**
 * Is told what became durable. Called synchronously after each append, in order; must not throw and must not wait. What
 * it is given is lent for the time of the call.
 */
export interface AppendListener {
  onAppended(appended: Appended): void;
}
