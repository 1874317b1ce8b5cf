import { open } from 'node:fs/promises';
import { z } from 'zod';
import { jsonlToParquet } from './jsonl-parquet.js';
import { ParquetOutput } from './parquet-output.js';
import { readParquetFooter } from './parquet-reader.js';
import { DEFAULT_LIMITS } from './row-group-limits.js';

/** Is told of a line in a record log that is no record; counted from 1. */
export type LineDamageReport = (line: number, reason: string) => void;

/** A record is never this long: more than any body that is taken. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** Behind the program's name, a footer says which parts of the log its row groups are. */
const PARTS_NOTE = ' log_parts=';

/** A part of a log that was written at one time: both ends count from the start of the file and the log. */
interface LogPart {
  readonly endGroup: number;
  readonly endBytes: number;
}

const partsSchema = z.array(z.tuple([z.number().int().positive(), z.number().int().positive()]));

/**
 * Writes a record log as a Parquet file, straight from its bytes: the rows of the file that `ParquetWriter` makes of its
 * records. Keeps the thread that it is called in busy for about as long as it takes. The file appears under its name only
 * when it is complete.
 *
 * Where the log has grown since the file was written, what came since becomes further row groups, and the others are
 * copied as they are. Parts that are no larger than what comes after them are written again with it, so that a file has few
 * row groups, and a record is written again a few times at the most, however many come late.
 * @param byteCount length of the part to be written; it ends with a line
 * @throws when the log cannot be read or the file cannot be written; an earlier file of that name is left as it was.
 */
export async function writeLogAsParquet(
  logPath: string,
  byteCount: number,
  parquetPath: string,
  onDamage: LineDamageReport,
): Promise<void> {
  const log = await open(logPath, 'r');
  try {
    const { output, parts } = await begin(parquetPath, byteCount);
    const fromOffset = parts.at(-1)?.endBytes ?? 0;
    const counted = fromOffset === 0 ? '' : ` (lines counted from byte ${fromOffset})`;
    try {
      await jsonlToParquet(log.fd, output, {
        ...{ fromOffset, byteCount },
        threads: 0,
        limits: { ...DEFAULT_LIMITS, maxLineBytes: MAX_LINE_BYTES, isRecordLog: true },
        toModern: (record) => record,
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

/** Begins with what the file of an earlier time has of the log, where it says so and the log has grown. */
async function begin(
  path: string,
  byteCount: number,
): Promise<{ readonly output: ParquetOutput; readonly parts: readonly LogPart[] }> {
  try {
    const footer = await readParquetFooter(path);
    const known = partsOf(footer.created_by ?? '');
    const isWhole = known.at(-1)?.endGroup === footer.row_groups.length;
    const parts = isWhole ? keptParts(known, byteCount) : [];
    const last = parts.at(-1);
    if (last !== undefined) return { output: await ParquetOutput.extend(path, footer, last.endGroup), parts };
  } catch {
    // There is none, or it is damaged: all of it is written.
  }
  return { output: await ParquetOutput.create(path), parts: [] };
}

/** Parts that are larger than what is written behind them; none where nothing came since. */
function keptParts(parts: readonly LogPart[], byteCount: number): readonly LogPart[] {
  const kept = [...parts];
  if ((kept.at(-1)?.endBytes ?? byteCount) >= byteCount) return [];
  for (let last = kept.at(-1); last !== undefined; last = kept.at(-1)) {
    const beginBytes = kept.at(-2)?.endBytes ?? 0;
    if (last.endBytes - beginBytes > byteCount - last.endBytes) break;
    kept.pop();
  }
  return kept;
}

function partsOf(createdBy: string): readonly LogPart[] {
  const [, text] = createdBy.split(PARTS_NOTE);
  const pairs = text === undefined ? [] : (partsSchema.safeParse(JSON.parse(text)).data ?? []);
  return pairs.map(([endGroup, endBytes]) => ({ endGroup, endBytes }));
}

function noteOf(parts: readonly LogPart[]): string {
  return PARTS_NOTE + JSON.stringify(parts.map(({ endGroup, endBytes }) => [endGroup, endBytes]));
}
