// The program of a thread that encodes stretches of files; `jsonlToParquet` starts it.
import { workerData } from 'node:worker_threads';
import { connectToStarter } from '../core/thread.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { type Stretch, StretchEncoder, type StretchLimits, type StretchStep } from './line-encoder.js';

/** What the thread offers. */
export interface StretchThreadCalls {
  /** Encodes a stretch of an open file, which has to stay open, one at a time; tells each step before it returns. */
  encode(job: { readonly file: number; readonly stretch: Stretch }): void;
}

/** What it may call. */
export interface StretchStarterCalls {
  step(step: StretchStep): void;
}

const limits: StretchLimits = workerData;
const encoder = new StretchEncoder(limits, modernRecord);
const channel = connectToStarter<StretchStarterCalls>();
channel.serve<StretchThreadCalls>({
  encode({ file, stretch }) {
    for (const step of encoder.encode(file, stretch)) {
      channel.tell(
        'step',
        step,
        step.groups.map((group) => group.bytes.buffer),
      );
    }
  },
});
