// The program of the thread that writes Parquet; `ParquetThread` starts it.
import { workerData } from 'node:worker_threads';
import { connectToStarter } from '../core/thread.js';
import { createJobFiles } from './invocation-files.js';
import type { ParquetStarterCalls, ParquetThreadCalls, ParquetThreadSetup } from './parquet-thread.js';

const channel = connectToStarter<ParquetStarterCalls>();
const { dataFolder }: ParquetThreadSetup = workerData;
const files = createJobFiles(dataFolder, (line) => channel.notify('damaged', line));
channel.serve<ParquetThreadCalls>({ write: (job) => files.write(job) });
