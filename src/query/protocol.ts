import { z } from 'zod';
import type { QueryFiles } from './files.js';

// Messages between the program and the process of a query.

/** What one query may take. */
export interface QueryLimits {
  /** From the start of its process, in milliseconds. */
  readonly timeoutMs: number;
  /** Of the database engine, in megabytes; the whole process may take 400 MB more. */
  readonly memoryMegabytes: number;
  readonly threads: number;
  /** Further rows are not returned; the response says that there are some. `null` for all. */
  readonly maxRows: number | null;
  /** Of columns and rows as JSON, in bytes; further rows are not given. A Parquet file that is larger is an error. `null` for all. */
  readonly maxResultBytes: number | null;
}

/** The input of the process of a query, as JSON on its standard input. */
export interface QueryTask {
  readonly sql: string;
  readonly files: QueryFiles;
  readonly limits: QueryLimits;
  /** An absolute path: the rows are written there as Parquet, and none are given; `null` to have them given. */
  readonly parquetPath: string | null;
}

/** What it answers, a line of JSON each: columns, rows in parts, the end; or an error instead of what is left. */
export const queryMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('columns'), columns: z.array(z.object({ name: z.string(), type: z.string() })) }),
  z.object({ type: z.literal('rows'), rows: z.array(z.array(z.json())) }),
  z.object({ type: z.literal('end'), isTruncated: z.boolean() }),
  z.object({
    type: z.literal('error'),
    code: z.enum(['invalid', 'refused', 'memory', 'tooLarge', 'notInstalled', 'filesChanged', 'failed']),
    message: z.string(),
  }),
]);

export type QueryMessage = z.output<typeof queryMessageSchema>;

/** Why a query failed. */
export type QueryErrorCode =
  /** The SQL is wrong, or is not one SELECT. */
  | 'invalid'
  /** The SQL asks for what no query may touch: files, settings, extensions. */
  | 'refused'
  /** It exceeded its time limit. */
  | 'timeout'
  /** It needed more memory than its limit. */
  | 'memory'
  /** A row of the answer, or its Parquet file, is larger than the whole answer may be. */
  | 'tooLarge'
  /** As many queries as may run are running, and as many as may wait are waiting. */
  | 'busy'
  /** The database engine is not part of this installation. */
  | 'notInstalled'
  /** The client has gone, or the program is stopping. */
  | 'stopped'
  /** A fault of the engine, or of a file. */
  | 'failed';

/** A query failed; the message is for the client. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  constructor(
    readonly code: QueryErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
