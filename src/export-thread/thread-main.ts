// The program of the export thread; `ExportThread` starts it.
import { parentPort, workerData } from 'node:worker_threads';
import type { FromThread, ThreadSetup, ToThread } from './messages.js';
import { ThreadExports } from './thread-exports.js';

if (parentPort === null) throw new Error('this is the program of a thread; start run-bridge with dist/main.js');
const port = parentPort;
const exports = new ThreadExports(workerData as ThreadSetup, (message: FromThread) => port.postMessage(message));
port.on('message', (message: ToThread) => exports.take(message));
await exports.open();
