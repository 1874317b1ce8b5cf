import { resolve } from 'node:path';
import { SAMPLES } from '../fake/sample-run.js';

const ENGINE = new URL('stand-in-engine.mjs', import.meta.url).pathname;

/** A command line that does what a sample's command did, now. @param number tells its trace from those of other ones */
export function sampleCommand(sample: string, number: number): readonly string[] {
  const trace = `01a1fb8ed0ad7f3aa0000000${String(number).padStart(8, '0')}`;
  return [process.execPath, ENGINE, resolve(SAMPLES, sample), '--now', '--no-otlp', '--trace', trace];
}
