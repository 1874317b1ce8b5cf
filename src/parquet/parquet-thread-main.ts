// The program of the thread that writes Parquet; `ParquetThread` starts it.
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { connectToStarter } from '../core/thread.js';
import { LOG_FILE } from '../log/append-file.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { InvocationFiles } from './invocation-files.js';
import { LogParquetWriter } from './log-parquet.js';
import type { LinePosition, ParquetStarterCalls, ParquetThreadCalls, ParquetThreadSetup } from './parquet-thread.js';

const channel = connectToStarter<ParquetStarterCalls>();
const damaged = (traceId: string, at: LinePosition, reason: string) => channel.tell('damaged', { traceId, at, reason });

const { dataFolder }: ParquetThreadSetup = workerData;
const logs = new LogParquetWriter();
const files = new InvocationFiles(dataFolder, {
  // Jobs end where the log is durable, so nothing else has to be known of it.
  reader: new RecordLogFiles(dataFolder, (traceId, offset, reason) => damaged(traceId, { offset }, reason)),
  writeLog: (traceId, byteCount, path) =>
    logs.write(join(dataFolder, 'runs', traceId, LOG_FILE), byteCount, path, (line, reason) =>
      damaged(traceId, { line }, reason),
    ),
});
channel.serve<ParquetThreadCalls>({ write: (job) => files.write(job) });
