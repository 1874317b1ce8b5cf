import { formatRecordLine } from '../record/record-line.js';
import { CELL, PageBatch } from '../record/record-page.js';
import type { Resource } from '../record/resource.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { AppendedPiece } from './appended.js';

/** Records on their way into one record log, in the order in which they are to stand there. */
export class FreshRecords {
  private readonly stretches: (PageBatch | RecordStretch)[] = [];

  get isEmpty(): boolean {
    return this.stretches.length === 0;
  }

  addRecord(record: TelemetryRecord, resource: Resource): void {
    const last = this.stretches.at(-1);
    if (last instanceof RecordStretch && last.resource === resource) last.records.push(record);
    else this.stretches.push(new RecordStretch(resource, record));
  }

  /** Adds one row of a batch, all its lines. */
  addRow({ traceId, resource, page }: PageBatch, row: number): void {
    const last = this.stretches.at(-1);
    if (last instanceof PageBatch && last.page === page && last.to === row && last.resource === resource) last.to += 1;
    else this.stretches.push(new PageBatch(traceId, resource, page, row, row + 1));
  }

  /** The lines to write, the first at `offset`. */
  pieces(offset: number): readonly AppendedPiece[] {
    let at = offset;
    return this.stretches.map((stretch) => {
      const piece = stretch instanceof PageBatch ? rowsPiece(stretch, at) : stretch.piece(at);
      at += piece.lines.length;
      return piece;
    });
  }
}

/** Records of one resource that did not come as rows of a page. */
class RecordStretch {
  readonly records: TelemetryRecord[];

  constructor(
    readonly resource: Resource,
    first: TelemetryRecord,
  ) {
    this.records = [first];
  }

  piece(offset: number): AppendedPiece {
    const { resource, records } = this;
    const lines = records.map((record) => `${formatRecordLine(record)}\n`);
    const lineBytes = lines.map((line) => Buffer.byteLength(line));
    return { resource, offset, lines: Buffer.from(lines.join('')), records, lineBytes };
  }
}

function rowsPiece(rows: PageBatch, offset: number): AppendedPiece {
  const { page, from, to, resource } = rows;
  const lines = page.lines.subarray(page.cell(from, CELL.startLine), page.cell(to - 1, CELL.lineEnd));
  return { resource, offset, lines, rows };
}
