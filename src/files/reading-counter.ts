import type { Writable } from 'node:stream';
import type { ReadingProgress } from '../cli/progress-line.js';
import { cleanLine } from '../core/text.js';
import type { Reject, SourceChunk } from './record-source.js';

/** The counts of a reading from one or several sources. */
export interface ReadingResult {
  readonly recordCount: number;
  /** Spans and log records of other services. */
  readonly passthroughCount: number;
  /** Things that were skipped because they are no telemetry. */
  readonly rejectCount: number;
  /** The first 100 of them, with their path if there are several sources. */
  readonly rejects: readonly Reject[];
}

const KEPT_REJECTS = 100;

/** Counts what is read. */
export class ReadingCounter {
  private recordCount = 0;
  private passthroughCount = 0;
  private rejectCount = 0;
  private readonly rejects: Reject[] = [];

  /** Counts a chunk. @param pathForRejects is put before the place of each reject; empty for none */
  add({ delivery, rejects }: SourceChunk, pathForRejects = ''): void {
    for (const { records } of delivery.batches) this.recordCount += records.length;
    for (const { recordCount } of delivery.passthrough) this.passthroughCount += recordCount;
    for (const reject of rejects) {
      this.addReject(pathForRejects === '' ? reject : { ...reject, place: `${pathForRejects} ${reject.place}` });
    }
  }

  addRecords(count: number): void {
    this.recordCount += count;
  }

  addReject(reject: Reject): void {
    this.rejectCount += reject.count;
    if (this.rejects.length < KEPT_REJECTS) this.rejects.push(reject);
  }

  progress(bytesRead: number, totalBytes: number): ReadingProgress {
    return { bytesRead, totalBytes, recordCount: this.recordCount };
  }

  result(): ReadingResult {
    const { recordCount, passthroughCount, rejectCount, rejects } = this;
    return { recordCount, passthroughCount, rejectCount, rejects };
  }
}

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
  const { recordCount, passthroughCount, rejectCount, rejects } = result;
  const { done, rate = '', rejectsPath } = words;
  const passthrough = passthroughCount > 0 ? ` and ${passthroughCount} of other services` : '';
  stderr.write(`${cleanLine(done)}: ${recordCount} records${passthrough}${rate && ` ${rate}`}\n`);
  if (rejectCount === 0) return true;
  const kept = rejectsPath === undefined ? '' : `, and are kept in ${rejectsPath}`;
  stderr.write(`run-bridge: ${rejectCount} could not be read and were skipped${kept}:\n`);
  for (const { place, reason } of rejects.slice(0, MAX_LISTED)) stderr.write(`  ${cleanLine(`${place}: ${reason}`)}\n`);
  if (rejects.length > MAX_LISTED) stderr.write('  …\n');
  return false;
}
