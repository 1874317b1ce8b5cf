import { readableBytes } from '../component/readable-bytes.js';

/** What was read, and in what time. */
export interface ReadingRate {
  readonly fileCount: number;
  readonly recordCount: number;
  /** As it lies on the disk; 0 where that is unknown. */
  readonly byteCount: number;
  readonly elapsedMs: number;
}

/** How much was read and how fast, for example `from 3 files in 2.1 s (5,900 records and 8 MiB a second)`. */
export function describeRate({ fileCount, recordCount, byteCount, elapsedMs }: ReadingRate): string {
  // Of less than a tenth of a second, a rate says nothing.
  const seconds = Math.max(0.1, elapsedMs / 1000);
  const perSecond = Math.round(recordCount / seconds).toLocaleString('en');
  const bytes = byteCount === 0 ? '' : ` and ${readableBytes(Math.round(byteCount / seconds))}`;
  const files = fileCount === 1 ? '1 file' : `${fileCount} files`;
  return `from ${files} in ${seconds.toFixed(1)} s (${perSecond} records${bytes} a second)`;
}
