import { parentPort, workerData } from 'node:worker_threads';
import { modernRecord } from '../otlp/spelling.js';
import { type Stretch, StretchEncoder, type StretchLimits, type StretchStep } from './line-encoder.js';

/** What the thread is asked: to encode a stretch of an open file. */
export interface StretchJob {
  readonly file: number;
  readonly stretch: Stretch;
}

/** What it answers: each step, then that there is no more. What it throws ends the thread. */
export type StretchAnswer = StretchStep | 'done';

// The whole thread: one encoder, one job after another.
const encoder = new StretchEncoder(workerData as StretchLimits, modernRecord);

parentPort?.on('message', ({ file, stretch }: StretchJob) => {
  for (const step of encoder.encode(file, stretch)) {
    parentPort?.postMessage(
      step satisfies StretchAnswer,
      step.groups.map((group) => group.bytes.buffer),
    );
  }
  parentPort?.postMessage('done' satisfies StretchAnswer);
});
