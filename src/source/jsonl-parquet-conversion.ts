import { open } from 'node:fs/promises';
import { modernRecord } from '../decode/spelling.js';
import { jsonlToParquet } from '../parquet/jsonl-parquet.js';
import type { ParquetOutput } from '../parquet/parquet-writer.js';
import { DEFAULT_LIMITS } from '../parquet/row-group.js';
import { unreadable } from './jsonl-file.js';
import { tooLongReason } from './line-reject.js';
import { MAX_LINE_BYTES } from './line-splitter.js';
import type { ReadingTally } from './reading-tally.js';

/** What goes on while a file is converted. */
interface ConversionOptions {
  readonly sizeBytes: number;
  readonly threads: number;
  readonly signal: AbortSignal;
  readonly onProgress: (bytesRead: number) => void;
}

/**
 * Writes a JSONL file's records to a Parquet file by the short way: from bytes to columns, in threads. The same cells
 * come of it, the same rejects, and the same count of records in `tally`, as of reading the records and writing them.
 * @throws SourceError when the file cannot be read.
 */
export async function convertJsonlToParquet(
  path: string,
  output: ParquetOutput,
  tally: ReadingTally,
  { sizeBytes, threads, signal, onProgress }: ConversionOptions,
): Promise<void> {
  const file = await open(path, 'r').catch((cause) => {
    throw unreadable(path, cause);
  });
  let counted = 0;
  try {
    await jsonlToParquet(file.fd, output, {
      // What is appended while it is read belongs to it too.
      byteCount: Math.max(sizeBytes, (await file.stat()).size),
      threads,
      toModern: modernRecord,
      signal,
      limits: { ...DEFAULT_LIMITS, maxLineBytes: MAX_LINE_BYTES, isRecordLog: false },
      onReject: ({ line, reason }) =>
        tally.addReject({ place: `line ${line}`, reason: reason ?? tooLongReason(MAX_LINE_BYTES), count: 1 }),
      onProgress(bytesRead, recordCount) {
        tally.addRecords(recordCount - counted);
        counted = recordCount;
        onProgress(Math.min(bytesRead, sizeBytes));
      },
    });
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    await file.close();
  }
}
