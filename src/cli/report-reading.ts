import type { Writable } from 'node:stream';
import type { ReadingResult } from '../source/reading-tally.js';

/** What could not be read that is listed one by one. */
const MAX_LISTED = 10;

/**
 * Says in a line what was read, and what was not.
 * @param rejectsPath where those that could not be read are kept; `undefined` where they are not.
 * @returns whether everything could be read.
 */
export function reportReading(result: ReadingResult, done: string, stderr: Writable, rejectsPath?: string): boolean {
  const { recordCount, foreignCount, rejectCount, rejects } = result;
  const foreign = foreignCount > 0 ? ` and ${foreignCount} of other services` : '';
  stderr.write(`${done}: ${recordCount} records${foreign}\n`);
  if (rejectCount === 0) return true;
  const kept = rejectsPath === undefined ? '' : `, and are kept in ${rejectsPath}`;
  stderr.write(`run-bridge: ${rejectCount} could not be read and were left out${kept}:\n`);
  for (const { place, reason } of rejects.slice(0, MAX_LISTED)) stderr.write(`  ${place}: ${reason}\n`);
  if (rejects.length > MAX_LISTED) stderr.write('  …\n');
  return false;
}
