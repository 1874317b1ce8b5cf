import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { NoPermitError, Permits } from '../api/permissions.js';
import type { Clock } from '../core/clock.js';
import { linesOf, textOf } from '../core/lines.js';
import { packageFile } from '../core/package-file.js';
import type { QueryFiles } from './files.js';
import {
  QueryError,
  type QueryErrorCode,
  type QueryLimits,
  type QueryMessage,
  type QueryTask,
  queryMessageSchema,
} from './protocol.js';

/** The results of a query, in this order: its columns, rows in several messages, and whether there are more. */
export type QueryAnswer = Extract<QueryMessage, { type: 'columns' | 'rows' | 'end' }>;

/** A query with its files and limits. */
export interface QueryRequest {
  readonly sql: string;
  /** Lists the files; called again if files were replaced or removed while they were read. */
  files(): Promise<QueryFiles>;
  readonly limits: QueryLimits;
  /** See `QueryTask`; only the end is returned then. Default `null`. */
  readonly parquetPath?: string | null;
}

/** Dependencies of the engine. */
export interface QueryEngineDeps {
  /** The compiled program of a query's process. Default: the package's. */
  readonly entry?: URL;
  readonly clock: Clock;
  /** Aborts when the program stops; queries are ended. */
  readonly stopping: AbortSignal;
}

/** The longest part of a dead process's standard error in messages, in characters. */
const MAX_STDERR_CHARS = 2_000;

/**
 * Runs each query in a separate process: one that takes too long is killed, and a crash of the database engine affects nothing else. Two run at a time and eight wait; further ones are refused as
 * `busy`.
 */
export class QueryEngine {
  private readonly permits = new Permits('queries');

  constructor(private readonly deps: QueryEngineDeps) {}

  /**
   * Runs a query.
   * @param signal ends the query when the client has gone
   * @throws QueryError
   */
  async *run(request: QueryRequest, signal: AbortSignal): AsyncGenerator<QueryAnswer, void, undefined> {
    const stop = AbortSignal.any([signal, this.deps.stopping]);
    const release = await this.permit(stop);
    try {
      for (let isRetry = false; ; isRetry = true) {
        const answers = this.once(request, stop);
        const first = await answers.next();
        // A file may be replaced or removed between listing and reading; then the files are listed once more.
        if (first.done !== true && first.value.type === 'error' && first.value.code === 'filesChanged' && !isRetry)
          continue;
        if (first.done !== true) yield answerOf(first.value, request.limits);
        for await (const answer of answers) yield answerOf(answer, request.limits);
        return;
      }
    } finally {
      release();
    }
  }

  /** Waits for a permit. @returns a function that releases it @throws QueryError `busy`, `stopped` */
  private async permit(stop: AbortSignal): Promise<() => void> {
    try {
      return await this.permits.take(stop);
    } catch (error) {
      throw error instanceof NoPermitError ? new QueryError(error.code, error.message, { cause: error }) : error;
    }
  }

  private async *once(request: QueryRequest, stop: AbortSignal): AsyncGenerator<QueryMessage, void, undefined> {
    const { sql, limits, parquetPath = null } = request;
    const files = await request.files();
    if (stop.aborted) throw new QueryError('stopped', 'the query was stopped');
    const child = this.begin(files);
    const ended = new Promise<string>((resolve) => {
      child.on('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => resolve(code === null ? `signal ${signal}` : `code ${code}`));
    });
    // Without free file descriptors there are neither pipes, whatever their type says, nor a process.
    const { stdin, stdout, stderr: errors }: Partial<ChildProcess> = child;
    if (!stdin || !stdout || !errors)
      throw new QueryError('failed', `the query's process could not be started (${await ended})`);
    let reason: QueryError | undefined;
    const kill = (why: QueryError) => {
      reason ??= why;
      child.kill('SIGKILL');
    };
    const seconds = limits.timeoutMs / 1_000;
    const tooLong = `the query took longer than ${seconds} s; ask for less, by run_id, trace_id or time`;
    const timer = this.deps.clock.after(limits.timeoutMs, () => kill(new QueryError('timeout', tooLong)));
    const onStop = () => kill(new QueryError('stopped', 'the query was stopped'));
    stop.addEventListener('abort', onStop, { once: true });
    let isDone = false;
    let stderr = '';
    errors.setEncoding('utf8').on('data', (text: string) => {
      stderr = `${stderr}${text}`.slice(-MAX_STDERR_CHARS);
    });
    // Writing to a dead process fails; its exit code is the reason.
    stdin.on('error', () => {});
    stdin.end(JSON.stringify({ sql, files, limits, parquetPath } satisfies QueryTask));
    try {
      for await (const line of linesOf(stdout)) {
        const message = queryMessageSchema.parse(JSON.parse(textOf(line)));
        isDone = message.type === 'end' || message.type === 'error';
        yield message;
        if (isDone) return;
      }
      const how = await ended;
      throw (
        reason ??
        new QueryError('failed', `the query's process ended by itself (${how}): ${stderr.trim() || 'no word'}`)
      );
    } finally {
      timer.cancel();
      stop.removeEventListener('abort', onStop);
      child.kill('SIGKILL');
      await ended;
    }
  }

  private begin({ runsFolder, parquet, summaries }: QueryFiles): ChildProcess {
    // Without files, the folder may be missing.
    const cwd = parquet.length + summaries.length > 0 ? runsFolder : undefined;
    // The environment is empty, so that a query can read nothing from it and it cannot change how files are read.
    const { entry = packageFile('dist/query-process.js') } = this.deps;
    return fork(fileURLToPath(entry), { cwd, env: {}, execArgv: [], stdio: ['pipe', 'pipe', 'pipe', 'ipc'] });
  }
}

/** Returns an answer, or throws the error that it is. @throws QueryError */
function answerOf(message: QueryMessage, { memoryMegabytes }: QueryLimits): QueryAnswer {
  if (message.type !== 'error') return message;
  const code: QueryErrorCode = message.code === 'filesChanged' ? 'failed' : message.code;
  if (code === 'notInstalled') {
    const hint = 'install it beside run-bridge: npm install @duckdb/node-api, without --omit=optional';
    throw new QueryError(
      code,
      `queries need DuckDB, which is not part of this installation; ${hint} (${message.message})`,
    );
  }
  if (code === 'memory') {
    const hint = 'ask for less, by run_id, trace_id or time, or for fewer columns';
    throw new QueryError(code, `the query needed more than ${memoryMegabytes} MB of memory; ${hint}`);
  }
  throw new QueryError(code, message.message);
}
