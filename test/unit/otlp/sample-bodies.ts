import type { Signal } from '../../../src/record/record-batch.js';
import { sampleBodies as bodiesOf, SENT_SAMPLES } from '../../fake/sample-run.js';

/** A body that the engine sent. */
export interface SampleBody {
  readonly path: string;
  readonly signal: Signal;
  readonly body: Uint8Array;
}

/** Every OTLP body of the small samples, and those of a large one that are unlike them: its first of 512 spans and of logs. */
export const sampleBodies: readonly SampleBody[] = [
  ...SENT_SAMPLES.flatMap(bodiesWithPath),
  ...['traces', 'logs'].flatMap((signal) =>
    bodiesWithPath('big-build')
      .filter((one) => one.signal === signal)
      .slice(0, 1),
  ),
];

function bodiesWithPath(run: string): SampleBody[] {
  return bodiesOf(run).map(({ file, signal, body }) => ({ path: `${run}/${file}`, signal, body }));
}
