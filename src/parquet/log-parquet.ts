import { open } from 'node:fs/promises';
import type { FileMetaData } from 'hyparquet';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { jsonlToParquetHere } from './jsonl-parquet.js';
import { RangeEncoder } from './line-encoder.js';
import { readParquetFooter } from './parquet-reader.js';
import { ParquetOutput, ParquetWriter } from './parquet-writer.js';
import { DEFAULT_LIMITS } from './row-group.js';

/** Called for a line in a record log that is no record; counted from 1. */
type LineDamageReport = (line: number, reason: string) => void;

/** A record is never this long: more than any body that is taken. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** Behind the program's name, a footer says which parts of the log its row groups are. */
const PARTS_NOTE = ' log_parts=';

/** A part of a log that was written at one time: both ends count from the start of the file and the log. */
interface LogPart {
  readonly endGroup: number;
  readonly endBytes: number;
}

/** A part of a log of which a file has some of the records. */
export interface PickedPart extends LogPart {
  /** Tells which records the file has up to the part's end. */
  readonly digest: number;
}

/** Writes record logs as Parquet files, one at a time, straight from their bytes: what one took of memory serves the next. */
export class LogParquetWriter {
  private readonly encoder = new RangeEncoder(
    { ...DEFAULT_LIMITS, maxLineBytes: MAX_LINE_BYTES, isRecordLog: true },
    (record) => record,
  );

  /**
   * Writes the rows of the file that `ParquetWriter` makes of a log's records. Keeps the thread that it is called in busy for about
   * as long as it takes. The file appears under its name only when it is complete.
   *
   * Where the log has grown since the file was written, what came since becomes further row groups, and the others are
   * copied as they are. Parts that are no larger than what comes after them are written again with it, so that a file has few
   * row groups, and a record is written again a few times at the most, however many come late.
   * @param byteCount length of the part to be written; it ends with a line
   * @throws when the log cannot be read or the file cannot be written; an earlier file of that name is left as it was.
   */
  async write(logPath: string, byteCount: number, parquetPath: string, onDamage: LineDamageReport): Promise<void> {
    const log = await open(logPath, 'r');
    try {
      const { output, parts } = await begin(parquetPath, byteCount);
      const fromOffset = parts.at(-1)?.endBytes ?? 0;
      const counted = fromOffset === 0 ? '' : ` (lines counted from byte ${fromOffset})`;
      try {
        await jsonlToParquetHere(this.encoder, log.fd, output, {
          ...{ fromOffset, byteCount },
          signal: new AbortController().signal,
          onReject: ({ line, reason = `longer than ${MAX_LINE_BYTES} bytes` }) => onDamage(line, `${reason}${counted}`),
        });
        await output.close(noteOf([...parts, { endGroup: output.rowGroupCount, endBytes: byteCount }]));
      } catch (error) {
        await output.abort();
        throw error;
      }
    } finally {
      await log.close();
    }
  }
}

/** Begins with what the file of an earlier time has of the log, where it says so and the log has grown. */
async function begin(
  path: string,
  byteCount: number,
): Promise<{ readonly output: ParquetOutput; readonly parts: readonly LogPart[] }> {
  try {
    const footer = await readParquetFooter(path);
    const known = partsOf(footer, logPartOf);
    const last = known.at(-1);
    const sizes = known.map(({ endBytes }, at) => endBytes - (known[at - 1]?.endBytes ?? 0));
    const grownBytes = byteCount - (last?.endBytes ?? 0);
    const parts = grownBytes > 0 ? keptParts(known, sizes, grownBytes) : [];
    const kept = parts.at(-1);
    if (kept !== undefined) return { output: await ParquetOutput.extend(path, footer, kept.endGroup), parts };
  } catch {
    // There is none, or it is damaged: all of it is written.
  }
  return { output: await ParquetOutput.create(path), parts: [] };
}

/** Parts that are larger than what is written behind them. */
function keptParts<Part extends LogPart>(
  parts: readonly Part[],
  sizes: readonly number[],
  grownBy: number,
): readonly Part[] {
  let behind = grownBy;
  let count = parts.length;
  for (let size = sizes[count - 1]; size !== undefined && size <= behind; size = sizes[count - 1]) {
    behind += size;
    count -= 1;
  }
  return parts.slice(0, count);
}

/**
 * @param partOf what one of them is; `undefined` for anything else
 * @returns none where the file does not say all of its parts
 */
function partsOf<Part extends LogPart>(
  { created_by, row_groups }: FileMetaData,
  partOf: (tuple: unknown) => Part | undefined,
): readonly Part[] {
  const [, text] = (created_by ?? '').split(PARTS_NOTE);
  const tuples: unknown = text === undefined ? [] : JSON.parse(text);
  const found = Array.isArray(tuples) ? tuples.map(partOf) : [];
  const parts = found.flatMap((part) => part ?? []);
  return parts.length === found.length && parts.at(-1)?.endGroup === row_groups.length ? parts : [];
}

// A schema library would be half of what the thread that writes Parquet has to load.
function logPartOf(tuple: unknown): LogPart | undefined {
  if (!Array.isArray(tuple) || tuple.length !== 2) return undefined;
  const [endGroup, endBytes]: readonly unknown[] = tuple;
  return isCount(endGroup) && isCount(endBytes) && endGroup > 0 && endBytes > 0 ? { endGroup, endBytes } : undefined;
}

function pickedPartOf(tuple: unknown): PickedPart | undefined {
  if (!Array.isArray(tuple) || tuple.length !== 3) return undefined;
  const [digest]: readonly unknown[] = tuple.slice(2);
  const part = logPartOf(tuple.slice(0, 2));
  return part !== undefined && isCount(digest) ? { ...part, digest } : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function noteOf(parts: readonly (LogPart & Partial<PickedPart>)[]): string {
  const tuples = parts.map(({ endGroup, endBytes, digest }) => [
    endGroup,
    endBytes,
    ...(digest === undefined ? [] : [digest]),
  ]);
  return PARTS_NOTE + JSON.stringify(tuples);
}

/** A Parquet file of some of a log's records, which grows as that of a whole log does. */
export class PickedParquet {
  /** Where the log has to be read from: what the file has before that is kept. */
  readonly fromOffset: number;

  /** What the file of that name has; `undefined` where there is none that says so. */
  static async lastPart(path: string): Promise<PickedPart | undefined> {
    return (await readPicked(path))?.parts.at(-1);
  }

  /** Begins a file anew. @throws when it cannot be created. */
  static async create(path: string): Promise<PickedParquet> {
    return new PickedParquet(await ParquetWriter.create(path), []);
  }

  /**
   * Begins with what the file of that name has.
   * @param digest of the records that it is to have; otherwise it is begun anew
   * @param grownBy how many records are to be added
   * @throws when it cannot be created
   */
  static async extend(path: string, digest: number, grownBy: number): Promise<PickedParquet> {
    const known = await readPicked(path);
    if (known?.parts.at(-1)?.digest !== digest) return PickedParquet.create(path);
    const { footer, parts } = known;
    const sizes = parts.map(({ endGroup }, at) =>
      footer.row_groups
        .slice(parts[at - 1]?.endGroup ?? 0, endGroup)
        .reduce((sum, { num_rows }) => sum + Number(num_rows), 0),
    );
    const kept = keptParts(parts, sizes, grownBy);
    const last = kept.at(-1);
    if (last === undefined) return PickedParquet.create(path);
    return new PickedParquet(await ParquetWriter.extend(path, footer, last.endGroup), kept);
  }

  private constructor(
    private readonly writer: ParquetWriter,
    private readonly kept: readonly PickedPart[],
  ) {
    this.fromOffset = kept.at(-1)?.endBytes ?? 0;
  }

  async append(records: Iterable<TelemetryRecord>): Promise<void> {
    await this.writer.append(records);
  }

  /** Writes what is left and the footer, syncs and gives the file its name. @param part what of the log was read, and which records the file has */
  async close(part: Pick<PickedPart, 'endBytes' | 'digest'>): Promise<void> {
    const endGroup = await this.writer.finishGroup();
    await this.writer.close(noteOf([...this.kept, { endGroup, ...part }]));
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.writer.abort();
  }
}

async function readPicked(path: string) {
  try {
    const footer = await readParquetFooter(path);
    const parts = partsOf(footer, pickedPartOf);
    return parts.length === 0 ? undefined : { footer, parts };
  } catch {
    // There is none, or it is damaged.
    return undefined;
  }
}
