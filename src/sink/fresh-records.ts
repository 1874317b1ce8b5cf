import { formatRecordLine } from '../record/record-line.js';
import type { Resource } from '../record/resource.js';
import { SpanBatch } from '../record/span-batch.js';
import { CELL } from '../record/span-page.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { AppendedPiece } from './appended.js';

/** Records on their way into one record log, in the order in which they are to stand there. */
export class FreshRecords {
  private readonly stretches: (SpanBatch | RecordStretch)[] = [];

  get isEmpty(): boolean {
    return this.stretches.length === 0;
  }

  addRecord(record: TelemetryRecord, resource: Resource): void {
    const last = this.stretches.at(-1);
    if (last instanceof RecordStretch && last.resource === resource) last.records.push(record);
    else this.stretches.push(new RecordStretch(resource, record));
  }

  /** Adds one span of a batch, both its lines. */
  addSpan({ traceId, resource, page }: SpanBatch, span: number): void {
    const last = this.stretches.at(-1);
    if (last instanceof SpanBatch && last.page === page && last.to === span && last.resource === resource) last.to += 1;
    else this.stretches.push(new SpanBatch(traceId, resource, page, span, span + 1));
  }

  /** The lines to write, the first at `offset`. */
  pieces(offset: number): readonly AppendedPiece[] {
    let at = offset;
    return this.stretches.map((stretch) => {
      const piece = stretch instanceof SpanBatch ? spanPiece(stretch, at) : stretch.piece(at);
      at += piece.lines.length;
      return piece;
    });
  }
}

/** Records of one resource that did not come as spans of a page. */
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

function spanPiece(spans: SpanBatch, offset: number): AppendedPiece {
  const { page, from, to, resource } = spans;
  const lines = page.lines.subarray(page.cell(from, CELL.startLine), page.cell(to - 1, CELL.lineEnd));
  return { resource, offset, lines, spans };
}
