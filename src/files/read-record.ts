import { type Line, type LongLine, textOf } from '../core/lines.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { CellBatch, ChunkPool } from '../otlp/wire/item-chunk.js';
import { LineChunkReader } from '../otlp/wire/line-chunk.js';
import { isNestedTooDeep, MAX_JSON_LEVELS, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { RecordBatch } from '../record/record-batch.js';
import { parseRecordLine, RecordParseError, recordParts } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { batchesOf, type Reject } from './record-source.js';

/** The contents of a line of JSONL. */
interface ReadLine {
  readonly records: readonly TelemetryRecord[];
  readonly rejects: readonly Reject[];
}

/** Reads the records on a line of JSONL, in the engine's spelling: usually one, else all complete records in a damaged line, and rejects for the rest. */
export function readLine(line: Line): ReadLine {
  const whole = readPart(line);
  if (!('reason' in whole)) return { records: [whole], rejects: [] };
  const parts = partsOf(line, whole);
  const records: TelemetryRecord[] = [];
  const rejects = [...parts.rejects];
  for (const part of parts.lines) {
    const read = readPart(part);
    if ('reason' in read) rejects.push(read);
    else records.push(read);
  }
  return { records, rejects };
}

/**
 * Splits a line that cannot be read as a whole into parts, see `recordParts`.
 * @param whole the reject for the line if it has no parts
 * @param beginnings how a record may begin; default: as in JSONL
 */
export function partsOf(
  line: Line,
  whole: Reject,
  beginnings?: readonly Buffer[],
): { readonly lines: readonly Line[]; readonly rejects: readonly Reject[] } {
  const { bytes } = line;
  if (isUtf16(bytes)) return { lines: [], rejects: [rejectLine(line, 'in UTF-16; write the file again in UTF-8')] };
  const parts = recordParts(bytes, 0, bytes.length, beginnings);
  const [first] = parts;
  if (first === undefined) return { lines: [], rejects: [] };
  if (parts.length === 1 && first[1] - first[0] === bytes.length) return { lines: [], rejects: [whole] };
  const lines = parts.map(([start, end]) => ({
    ...line,
    offset: line.offset + start,
    bytes: bytes.subarray(start, end),
  }));
  return { lines, rejects: [] };
}

/** Whether a line looks like UTF-16, which PowerShell's `>` writes. */
function isUtf16(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, HEAD_BYTES)).toString('latin1');
  return /^(\xff\xfe|\xfe\xff)/.test(head) || /\{\0"\0|\0\{\0"/.test(head);
}

function readPart(line: Line): TelemetryRecord | Reject {
  const text = textOf(line);
  if (isNestedTooDeep(text)) return rejectLine(line, `nested deeper than ${MAX_JSON_LEVELS} levels`);
  try {
    return modernRecord(parseRecordLine(text));
  } catch (error) {
    if (!(error instanceof RecordParseError)) throw error;
    return rejectLine(line, error.message);
  }
}

/** Reads the records on lines of JSONL, in order, and returns rejects for the other lines. */
export function readRecords(lines: readonly Line[]): { records: TelemetryRecord[]; rejects: Reject[] } {
  const records: TelemetryRecord[] = [];
  const rejects: Reject[] = [];
  for (const line of lines) {
    const read = readLine(line);
    for (const record of read.records) records.push(record);
    for (const reject of read.rejects) rejects.push(reject);
  }
  return { records, rejects };
}

/** The records on lines, in their order and without a resource: consecutive ones of one trace are a batch. */
export interface ReadLines {
  readonly batches: readonly RecordBatch[];
  /** The lines that are no records. */
  readonly rejects: readonly Reject[];
  /** Gives back what the batches stand in; nothing of them may be read afterwards. */
  release(): void;
}

/** Reads lines of JSONL: as cells where they look as nearly all do, else as records. */
export class LineReader {
  private readonly chunks = new ChunkPool();
  private readonly cells = new LineChunkReader();

  read(lines: readonly Line[]): ReadLines {
    const { cells, chunks } = this;
    const chunk = chunks.take(lines.reduce((sum, { bytes }) => sum + bytes.length + 1, 0));
    const batches: RecordBatch[] = [];
    const rejects: Reject[] = [];
    let items: CellBatch | undefined;
    let start = 0;
    cells.begin(chunk, lines);
    for (const line of lines) {
      const end = start + line.bytes.length + 1;
      if (cells.add(chunk, start, end)) {
        const { itemCount } = chunk;
        if (items?.traceId === cells.traceId) items.to = itemCount;
        else {
          items = new CellBatch(cells.traceId, UNKNOWN_RESOURCE, chunk, itemCount - 1, itemCount);
          batches.push(items);
        }
      } else {
        items = undefined;
        const read = readLine(line);
        for (const batch of batchesOf(read.records)) batches.push(batch);
        for (const reject of read.rejects) rejects.push(reject);
      }
      start = end;
    }
    return { batches, rejects, release: () => chunks.giveBack(chunk) };
  }
}

/** How many bytes of a line are examined for its encoding. */
const HEAD_BYTES = 64;
/** How many bytes of a rejected line are kept. */
const TEXT_BYTES = 4096;

/**
 * Makes the reject for a line.
 * @param reason why it is rejected, without a full stop
 * @param count number of records that it stands for
 */
export function rejectLine({ number, offset, bytes }: Omit<Line, 'endOffset'>, reason: string, count = 1): Reject {
  const text = Buffer.from(bytes.subarray(0, TEXT_BYTES)).toString('utf8');
  return { place: `line ${number}`, reason, count, offset, text };
}

/** Makes the reject for a line longer than the limit. */
export function rejectLongLine({ head, ...position }: LongLine, maxLineBytes: number): Reject {
  return rejectLine({ ...position, bytes: head }, tooLongReason(maxLineBytes));
}

/** Returns the reason for rejecting a line longer than the limit. */
export function tooLongReason(maxLineBytes: number): string {
  return `longer than ${maxLineBytes} bytes`;
}
