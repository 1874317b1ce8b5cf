/** What one query may take. */
export interface QueryLimits {
  /** From the start of its process, in milliseconds. */
  readonly timeoutMs: number;
  /** Of the database engine, in megabytes; the whole process may take 400 MB more. */
  readonly memoryMegabytes: number;
  readonly threads: number;
  /** Further rows are not given; the answer says that there are some. `null` for all. */
  readonly maxRows: number | null;
  /** Of columns and rows as JSON, in bytes; further rows are not given. `null` for all. */
  readonly maxResultBytes: number | null;
}

/** Of queries over the API. */
export const API_QUERY_LIMITS: QueryLimits = {
  timeoutMs: 30_000,
  memoryMegabytes: 512,
  threads: 2,
  maxRows: 1_000,
  // 16 MiB with what stands round them.
  maxResultBytes: 16 * 1024 * 1024 - 1_024,
};

/** The most rows that a query over the API may ask for. */
export const MAX_API_ROWS = 100_000;

/** The longest SQL, in characters. */
export const MAX_SQL_CHARS = 100_000;
