import type { Reject, SourceChunk } from './record-source.js';

/** What was read from one or several sources. */
export interface ReadingResult {
  readonly recordCount: number;
  /** Spans and log records of other services. */
  readonly foreignCount: number;
  /** What was passed over because it is no telemetry. */
  readonly rejectCount: number;
  /** The first 100 of them, with the path where there are several. */
  readonly rejects: readonly Reject[];
}

/** How far a reading has come. */
export interface ReadingProgress {
  readonly bytesRead: number;
  /** 0 when unknown. */
  readonly totalBytes: number;
  readonly recordCount: number;
}

const KEPT_REJECTS = 100;

/** Counts what is read. */
export class ReadingTally {
  private recordCount = 0;
  private foreignCount = 0;
  private rejectCount = 0;
  private readonly rejects: Reject[] = [];

  /** @param pathForRejects put before the place of a reject; empty for none. */
  add({ delivery, rejects }: SourceChunk, pathForRejects = ''): void {
    for (const { records } of delivery.batches) this.recordCount += records.length;
    for (const { recordCount } of delivery.foreign) this.foreignCount += recordCount;
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
    const { recordCount, foreignCount, rejectCount, rejects } = this;
    return { recordCount, foreignCount, rejectCount, rejects };
  }
}
