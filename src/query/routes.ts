import express, { Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success } from '../api/envelope.js';
import { answersWith } from '../api/openapi/answers.js';
import { parsedParameters } from '../api/parameters.js';
import { goneOf } from '../api/permissions.js';
import type { TraceId } from '../record/telemetry-record.js';
import { API_PATH } from '../run/api-path.js';
import type { TraceCatalog, UnnamedRun } from '../storage/trace-catalog.js';
import type { QueryEngine } from './engine.js';
import type { QueryFiles } from './files.js';
import { QueryError, type QueryErrorCode, type QueryLimits } from './protocol.js';

/** The limits of queries over the API. */
export const API_QUERY_LIMITS: QueryLimits = {
  timeoutMs: 30_000,
  memoryMegabytes: 512,
  threads: 2,
  maxRows: 1_000,
  // 16 MiB including the envelope.
  maxResultBytes: 16 * 1024 * 1024 - 1_024,
};

/** The most rows that a query over the API may ask for. */
export const MAX_API_ROWS = 100_000;

/** The longest SQL, in characters. */
const MAX_SQL_CHARS = 100_000;

/** The largest body: the longest SQL with four bytes a character. */
const MAX_BODY_BYTES = 512 * 1024;

/** The body of `POST /query`. */
const querySchema = z.object({
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

/** The `data` of its answer. */
const queryAnswerSchema = z.object({
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

/** Dependencies of the router. */
export interface QueryRouterDeps {
  readonly traces: TraceCatalog;
  readonly queries: Pick<QueryEngine, 'run'>;
  /** Finds the files of an account's runs. */
  readonly listFiles: (traceIds: readonly TraceId[], unnamed: readonly UnnamedRun[]) => Promise<QueryFiles>;
}

/** Serves `POST /query`: SQL over an account's runs. */
export function queryRouter(deps: QueryRouterDeps): Router {
  const router = Router();
  const json = express.json({ limit: MAX_BODY_BYTES });
  router.post(`${API_PATH}/query`, authorize('query'), json, async (request, response) => {
    const body = parsedParameters(querySchema, request.body ?? {});
    response.json(success(await answerQuery(callerOf(response).accountId, body, deps, goneOf(response))));
  });
  return router;
}

/** The API description of the router. */
export const QUERY_PATHS: ZodOpenApiPathsObject = {
  [`${API_PATH}/query`]: {
    post: {
      tags: ['run-bridge: SQL'],
      summary: "SQL over the account's runs: one SELECT over the views runs, steps, nodes, tests, queries, records",
      requestBody: { required: true, content: { 'application/json': { schema: querySchema } } },
      responses: answersWith(queryAnswerSchema, 'The rows.', [408, 413, 415, 501]),
    },
  },
};

/** A query of an account. */
interface AskedQuery extends z.output<typeof querySchema> {
  /** A path to which the rows are written as Parquet instead of being returned; `null` to return them. */
  readonly parquetPath?: string | null;
}

/** Runs a query over an account's runs. @throws ApiError */
export async function answerQuery(
  accountId: number,
  { sql, limit, parquetPath = null }: AskedQuery,
  { queries, traces, listFiles }: QueryRouterDeps,
  signal: AbortSignal,
): Promise<z.input<typeof queryAnswerSchema>> {
  let leftOutCount = 0;
  const files = async () => {
    const traceIds = await traces.listTraces(accountId);
    const unnamed = await traces.listUnnamed(accountId);
    const listed = await listFiles(traceIds, unnamed);
    leftOutCount = listed.leftOutCount;
    return listed;
  };
  const columns: z.input<typeof queryAnswerSchema>['columns'] = [];
  const rows: z.input<typeof queryAnswerSchema>['rows'] = [];
  let isTruncated = false;
  try {
    const limits = { ...API_QUERY_LIMITS, maxRows: limit };
    for await (const answer of queries.run({ sql, files, limits, parquetPath }, signal)) {
      if (answer.type === 'columns') columns.push(...answer.columns);
      else if (answer.type === 'rows') rows.push(...answer.rows);
      else isTruncated = answer.isTruncated;
    }
  } catch (error) {
    throw error instanceof QueryError ? toApiError(error) : error;
  }
  return { columns, rows, row_count: rows.length, is_truncated: isTruncated, left_out_run_count: leftOutCount };
}

function toApiError(error: QueryError): ApiError {
  const headers: Readonly<Record<string, string>> = error.code === 'busy' ? { 'Retry-After': '2' } : {};
  return new ApiError(STATUS[error.code], error.message, headers, { cause: error });
}
