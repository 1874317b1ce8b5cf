import { join } from 'node:path';
import { LOG_FILE } from '../log/append-file.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { InvocationFiles } from './invocation-files.js';
import { LogParquetWriter } from './log-parquet.js';
import type { ParquetJobWriter } from './run-parquet.js';

/** A line of the record log that is no record; at its number or, where the log was read in records, its offset in bytes. */
export interface DamagedLine {
  readonly traceId: string;
  readonly at: { readonly line: number } | { readonly offset: number };
  readonly reason: string;
}

/**
 * Writes the files of jobs in this thread, between the other things that it does.
 * @param dataFolder the data folder; runs are in its `runs/`
 */
export function createJobFiles(dataFolder: string, onDamage: (line: DamagedLine) => void): ParquetJobWriter {
  const logs = new LogParquetWriter();
  return new InvocationFiles(dataFolder, {
    // Jobs end where the log is durable, so nothing else has to be known of it.
    reader: new RecordLogFiles(dataFolder, (traceId, offset, reason) => onDamage({ traceId, at: { offset }, reason })),
    writeLog: (traceId, byteCount, path) =>
      logs.write(join(dataFolder, 'runs', traceId, LOG_FILE), byteCount, path, (line, reason) =>
        onDamage({ traceId, at: { line }, reason }),
      ),
  });
}
