import { CellBatch, FIELD } from '../otlp/wire/item-chunk.js';
import type { Resource } from '../record/attributes.js';
import { formatRecordLine } from '../record/record-line.js';
import type { TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import type { LoggedRecord } from './record-log.js';

/** Consecutive records of one resource in a record log: their lines and metadata. */
export interface AppendedPiece {
  readonly resource: Resource;
  /** Offset of the first line in the record log. */
  readonly offset: number;
  /** Whole lines, with their line breaks. */
  readonly lines: Uint8Array;
  /** From items of a chunk: these, each with all its lines. */
  readonly items?: CellBatch;
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
  ) {}

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  /** Offset of the first record; the log's length if there is none. */
  get offset(): number {
    return this.pieces[0]?.offset ?? this.lengthBytes;
  }
}

/** Returns a piece's records with their offsets. They may be kept, unlike the piece. */
export function loggedRecords(piece: AppendedPiece): readonly LoggedRecord[] {
  const { resource, items } = piece;
  const logged: LoggedRecord[] = [];
  let { offset } = piece;
  const add = (record: TelemetryRecord, byteCount: number) => {
    logged.push({ record, resource, offset, endOffset: offset + byteCount });
    offset += byteCount;
  };
  if (items !== undefined) {
    const { chunk, from, to } = items;
    for (let index = from; index < to; index++) {
      const [first, second] = chunk.recordsOf(index);
      const startLine = chunk.field(index, FIELD.startLine);
      const lineEnd = chunk.field(index, FIELD.lineEnd);
      const endLine = second === undefined ? lineEnd : chunk.field(index, FIELD.endLine);
      if (first !== undefined) add(first, endLine - startLine);
      if (second !== undefined) add(second, lineEnd - endLine);
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

/** Records on their way into one record log, in the order in which they are to stand there. */
export class FreshRecords {
  private readonly parts: (CellBatch | RecordPart)[] = [];

  get isEmpty(): boolean {
    return this.parts.length === 0;
  }

  addRecord(record: TelemetryRecord, resource: Resource): void {
    const last = this.parts.at(-1);
    if (last instanceof RecordPart && last.resource === resource) last.records.push(record);
    else this.parts.push(new RecordPart(resource, record));
  }

  /** Adds one item of a trace, all its lines. */
  addItem({ traceId, resource, chunk }: Pick<CellBatch, 'traceId' | 'resource' | 'chunk'>, index: number): void {
    const last = this.parts.at(-1);
    const isNext = last instanceof CellBatch && last.chunk === chunk && last.to === index;
    if (isNext && last.resource === resource) last.to += 1;
    else this.parts.push(new CellBatch(traceId, resource, chunk, index, index + 1));
  }

  /** Adds what is to stand behind these. */
  addAll({ parts }: FreshRecords): void {
    for (const part of parts) this.parts.push(part);
  }

  /** Returns the lines to write, the first at `offset`. */
  pieces(offset: number): readonly AppendedPiece[] {
    let at = offset;
    return this.parts.map((part) => {
      const piece = part instanceof CellBatch ? itemsPiece(part, at) : part.piece(at);
      at += piece.lines.length;
      return piece;
    });
  }
}

/** Records of one resource that did not come as items of a chunk. */
class RecordPart {
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

function itemsPiece(items: CellBatch, offset: number): AppendedPiece {
  const { chunk, from, to, resource } = items;
  const lines = chunk.lines.subarray(chunk.field(from, FIELD.startLine), chunk.field(to - 1, FIELD.lineEnd));
  return { resource, offset, lines, items };
}
