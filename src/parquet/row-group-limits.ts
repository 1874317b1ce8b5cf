import type { RowGroupColumns } from './row-group-columns.js';

/** Limits of a row group. */
export interface ParquetWriterLimits {
  /** Default 100,000: the engine itself writes all rows into one. */
  readonly maxRowGroupRows: number;
  /** Bytes (compressed pages and dictionaries) at which a row group ends early. Default 64 MiB. */
  readonly maxRowGroupBytes: number;
}

export const DEFAULT_LIMITS: ParquetWriterLimits = {
  maxRowGroupRows: 100_000,
  maxRowGroupBytes: 64 * 1024 * 1024,
};

/** Rows after which the held bytes are counted. */
const SIZE_CHECK_ROWS = 1_000;

/** Whether a row group has reached its limits; to be asked after each row. */
export function isGroupFull(columns: RowGroupColumns, limits: ParquetWriterLimits): boolean {
  const { rowCount } = columns;
  if (rowCount >= limits.maxRowGroupRows) return true;
  return rowCount % SIZE_CHECK_ROWS === 0 && columns.bufferedBytes >= limits.maxRowGroupBytes;
}
