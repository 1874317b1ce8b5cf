// The program of the thread that writes Parquet; `ParquetThread` starts it.
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { reasonOf } from '../core/reason-of.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { LOG_FILE } from '../log/trace-log.js';
import { InvocationFiles } from './invocation-files.js';
import { writeLogAsParquet } from './log-parquet.js';
import type { FromParquetThread, LinePlace, ParquetThreadSetup, ToParquetThread } from './parquet-thread.js';

if (parentPort === null)
  throw new Error('this file is the program of a worker thread; start run-bridge with dist/main.js');
const port = parentPort;
const post = (message: FromParquetThread) => port.postMessage(message);
const damaged = (traceId: string, at: LinePlace, reason: string) => post({ type: 'damaged', traceId, at, reason });

const { dataFolder } = workerData as ParquetThreadSetup;
const files = new InvocationFiles(dataFolder, {
  // Jobs end where the log is durable, so nothing else has to be known of it.
  reader: new RecordLogFiles(dataFolder, (traceId, offset, reason) => damaged(traceId, { offset }, reason)),
  writeLog: (traceId, byteCount, path) =>
    writeLogAsParquet(join(dataFolder, 'runs', traceId, LOG_FILE), byteCount, path, (line, reason) =>
      damaged(traceId, { line }, reason),
    ),
});

port.on('message', (job: ToParquetThread) => {
  files.write(job).then(
    () => post({ type: 'done', error: null }),
    (error: unknown) => post({ type: 'done', error: reasonOf(error) }),
  );
});
