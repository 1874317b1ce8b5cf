import type { Writable } from 'node:stream';
import { cleanLine } from '../core/text.js';
import type { ReadingResult } from '../files/feature.js';

/** What could not be read that is listed one by one. */
const MAX_LISTED = 10;

/** How the result of reading files is reported. */
export interface ReadingWords {
  /** What was done, for example `wrote out.parquet`. */
  readonly done: string;
  /** How fast, to be put behind the count; default nothing. */
  readonly rate?: string;
  /** The file for lines that could not be read; default none. */
  readonly rejectsPath?: string;
}

/** Reports in a line what was read, and what was not. Returns whether everything could be read. */
export function reportReading(result: ReadingResult, words: ReadingWords, stderr: Writable): boolean {
  const { recordCount, foreignCount, rejectCount, rejects } = result;
  const { done, rate = '', rejectsPath } = words;
  const foreign = foreignCount > 0 ? ` and ${foreignCount} of other services` : '';
  stderr.write(`${cleanLine(done)}: ${recordCount} records${foreign}${rate && ` ${rate}`}\n`);
  if (rejectCount === 0) return true;
  const kept = rejectsPath === undefined ? '' : `, and are kept in ${rejectsPath}`;
  stderr.write(`run-bridge: ${rejectCount} could not be read and were skipped${kept}:\n`);
  for (const { place, reason } of rejects.slice(0, MAX_LISTED)) stderr.write(`  ${cleanLine(`${place}: ${reason}`)}\n`);
  if (rejects.length > MAX_LISTED) stderr.write('  …\n');
  return false;
}
