import { open } from 'node:fs/promises';
import { jsonlToParquet } from './jsonl-parquet.js';
import { ParquetOutput } from './parquet-output.js';
import { DEFAULT_LIMITS } from './row-group-limits.js';

/** Is told of a line in a record log that is no record; counted from 1. */
export type LineDamageReport = (line: number, reason: string) => void;

/** A record is never this long: more than any body that is taken. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/**
 * Writes a record log as a Parquet file, straight from its bytes: the rows of the file that `ParquetWriter` makes of its
 * records. Keeps the thread that it is called in busy for about as long as it takes. The file appears under its name only
 * when it is complete.
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
    const output = await ParquetOutput.create(parquetPath);
    try {
      await jsonlToParquet(log.fd, output, {
        byteCount,
        threads: 0,
        limits: { ...DEFAULT_LIMITS, maxLineBytes: MAX_LINE_BYTES, isRecordLog: true },
        toModern: (record) => record,
        signal: new AbortController().signal,
        onReject: ({ line, reason = `longer than ${MAX_LINE_BYTES} bytes` }) => onDamage(line, reason),
      });
      await output.close();
    } catch (error) {
      await output.abort();
      throw error;
    }
  } finally {
    await log.close();
  }
}
