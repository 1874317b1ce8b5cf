// The program of a thread that encodes ranges of files; `jsonlToParquet` starts it.
import { workerData } from 'node:worker_threads';
import { connectToStarter } from '../core/thread.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { type FileRange, RangeEncoder, type RangeLimits, type RangeStep } from './line-encoder.js';

/** What the thread offers. */
export interface RangeThreadCalls {
  /** Encodes a range of an open file, which has to stay open, one at a time; tells each step before it returns. */
  encode(job: { readonly file: number; readonly range: FileRange }): void;
}

/** What it may call. */
export interface RangeStarterCalls {
  step(step: RangeStep): void;
}

const limits: RangeLimits = workerData;
const encoder = new RangeEncoder(limits, modernRecord);
const channel = connectToStarter<RangeStarterCalls>();
channel.serve<RangeThreadCalls>({
  encode({ file, range }) {
    for (const step of encoder.encode(file, range)) {
      channel.notify(
        'step',
        step,
        step.groups.map((group) => group.bytes.buffer),
      );
    }
  },
});
