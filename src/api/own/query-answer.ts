import { z } from 'zod';
import { listQueryFiles } from '../../query/list-query-files.js';
import { QueryError, type QueryErrorCode } from '../../query/query-error.js';
import { API_QUERY_LIMITS, MAX_API_ROWS, MAX_SQL_CHARS } from '../../query/query-limits.js';
import { ApiError } from '../api-error.js';
import type { OwnApiDeps } from './own-api-deps.js';

/** The body of `POST /query`. */
export const querySchema = z.object({
  sql: z
    .string()
    .max(MAX_SQL_CHARS)
    .meta({ description: 'one SELECT in the SQL of DuckDB', example: 'SELECT * FROM runs' }),
  limit: z
    .number()
    .int()
    .min(1)
    .max(MAX_API_ROWS)
    .default(API_QUERY_LIMITS.maxRows ?? MAX_API_ROWS),
});

/** `data` of its answer. */
export const queryAnswerSchema = z.object({
  columns: z.array(z.object({ name: z.string(), type: z.string().meta({ description: 'of DuckDB' }) })),
  rows: z.array(z.array(z.json())),
  row_count: z.number().int(),
  is_truncated: z.boolean().meta({ description: 'whether there are more rows than were given' }),
  left_out_run_count: z.number().int().meta({ description: 'runs beyond the 20,000 latest, which were not asked' }),
});

const STATUS: Readonly<Record<QueryErrorCode, number>> = {
  invalid: 400,
  refused: 400,
  timeout: 408,
  memory: 413,
  tooLarge: 413,
  busy: 503,
  notInstalled: 501,
  stopped: 503,
  failed: 500,
};

/** Asks an account's runs. @throws ApiError */
export async function answerQuery(
  accountId: number,
  { sql, limit }: z.output<typeof querySchema>,
  { queries, traces, dataFolder, queryFiles }: Pick<OwnApiDeps, 'queries' | 'traces' | 'dataFolder' | 'queryFiles'>,
  signal: AbortSignal,
): Promise<z.input<typeof queryAnswerSchema>> {
  let leftOutCount = 0;
  const files = async () => {
    const traceIds = await traces.listTraces(accountId);
    const unnamed = await traces.listUnnamed(accountId);
    const listed = await (queryFiles?.(traceIds, unnamed) ?? listQueryFiles(dataFolder, traceIds, { unnamed }));
    leftOutCount = listed.leftOutCount;
    return listed;
  };
  const columns: z.input<typeof queryAnswerSchema>['columns'] = [];
  const rows: z.input<typeof queryAnswerSchema>['rows'] = [];
  let isTruncated = false;
  try {
    for await (const answer of queries.run({ sql, files, limits: { ...API_QUERY_LIMITS, maxRows: limit } }, signal)) {
      if (answer.type === 'columns') columns.push(...answer.columns);
      else if (answer.type === 'rows') rows.push(...answer.rows);
      else isTruncated = answer.isTruncated;
    }
  } catch (error) {
    throw error instanceof QueryError ? toApiError(error) : error;
  }
  return { columns, rows, row_count: rows.length, is_truncated: isTruncated, left_out_run_count: leftOutCount };
}

/** An error of a query, or of a place to wait for, as an answer. */
export function toApiError(error: QueryError): ApiError {
  const headers: Readonly<Record<string, string>> = error.code === 'busy' ? { 'Retry-After': '2' } : {};
  return new ApiError(STATUS[error.code], error.message, headers, { cause: error });
}
