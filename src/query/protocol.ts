import { z } from 'zod';
import type { QueryFiles } from './files.js';

// Messages between the program and the process of a query.

/** The limits of a query. */
export interface QueryLimits {
  /** The time from the start of its process, in milliseconds. */
  readonly timeoutMs: number;
  /** The memory of the database engine, in megabytes; the whole process may take 400 MB more. */
  readonly memoryMegabytes: number;
  readonly threads: number;
  /** The most rows; the response says whether there are more. `null` for all. */
  readonly maxRows: number | null;
  /** The largest JSON of columns and rows, in bytes; further rows are not returned. A larger Parquet file is an error. `null` for no limit. */
  readonly maxResultBytes: number | null;
}

/** The input of the process of a query, as JSON on its standard input. */
export interface QueryTask {
  readonly sql: string;
  readonly files: QueryFiles;
  readonly limits: QueryLimits;
  /** An absolute path to which the rows are written as Parquet instead of being returned; `null` to return them. */
  readonly parquetPath: string | null;
}

/** The output of the process of a query, a line of JSON each: the columns, rows in several messages, and the end; or an error instead of the rest. */
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
  /** The SQL uses something that queries may not: files, settings, extensions. */
  | 'refused'
  /** It exceeded its time limit. */
  | 'timeout'
  /** It needed more memory than its limit. */
  | 'memory'
  /** A row, or the Parquet file, is larger than a whole answer may be. */
  | 'tooLarge'
  /** Too many queries are running and waiting. */
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
