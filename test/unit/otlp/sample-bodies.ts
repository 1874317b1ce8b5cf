import { readdirSync, readFileSync } from 'node:fs';
import type { Signal } from '../../../src/record/record-batch.js';

/** A body that the engine sent. */
export interface SampleBody {
  readonly path: string;
  readonly signal: Signal;
  readonly body: Uint8Array;
}

const samples = new URL('../../fixture/samples/', import.meta.url);

/** Every OTLP body of the samples. */
export const sampleBodies: readonly SampleBody[] = readdirSync(samples, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.bin'))
  .sort()
  .map((path) => ({
    path,
    signal: path.endsWith('-traces.bin') ? 'traces' : 'logs',
    body: readFileSync(new URL(path, samples)),
  }));
