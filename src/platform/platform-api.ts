import { open } from 'node:fs/promises';
import { ZodError } from 'zod';
import { errorCode } from '../core/errors.js';
import { readableBytes } from '../core/text.js';
import { PlatformError } from './platform-error.js';
import { type PlatformAnswer, type PlatformHttp, readJson } from './platform-http.js';
import {
  isNullAnswer,
  type PlatformPage,
  type PlatformRun,
  parseEnvelope,
  parsePageAnswer,
  parseRunAnswer,
} from './platform-run.js';

/** Which runs of an account. */
export interface RunQuery {
  /** `null` for all jobs. */
  readonly jobId: string | null;
  /** Created at or after this time. */
  readonly createdFromUnixMs: number;
  /** Created at or before this time. */
  readonly createdToUnixMs: number;
}

/** The most that the platform lists at a time. */
const PAGE_LIMIT = 100;
/** A run with its steps carries their logs. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/** What the bridge asks of one account of a hosted platform: its v2 API, as far as telemetry goes. */
export class PlatformApi {
  constructor(
    private readonly http: PlatformHttp,
    readonly accountId: string,
  ) {}

  /** A run with its steps. @throws PlatformError */
  async findRun(runId: string, signal: AbortSignal): Promise<PlatformRun> {
    const include = { include_related: '["run_steps","job","environment","trigger"]' };
    try {
      return await this.ask(`runs/${runId}/`, include, parseRunAnswer, signal);
    } catch (error) {
      throw await this.explain(error, `there is no run ${runId} in account ${this.accountId}`, signal);
    }
  }

  /**
   * Runs, oldest first, in pages. Totals and filters are not relied on: a page that is full is followed by another one,
   * and no run from outside of the time is given.
   * @throws PlatformError
   */
  async *listRuns(query: RunQuery, signal: AbortSignal): AsyncGenerator<readonly PlatformRun[]> {
    let before = new Set<string>();
    for (let offset = 0; ; ) {
      const { runs, totalCount } = await this.listPage(query, offset, signal);
      const fresh = runs.filter(({ runId }) => !before.has(runId));
      before = new Set(runs.map(({ runId }) => runId));
      const wanted = fresh.filter((run) => isWithin(run, query));
      if (wanted.length > 0) yield wanted;
      offset += runs.length;
      // A server that does not know offsets would give its first page for ever.
      if (fresh.length === 0 || (runs.length < PAGE_LIMIT && offset >= (totalCount ?? 0))) return;
    }
  }

  /**
   * Downloads a step's telemetry.
   * @returns its length in bytes; `null` where the step has none.
   * @throws PlatformError
   */
  async fetchTelemetry(
    runId: string,
    stepIndex: number,
    target: DownloadTarget,
    signal: AbortSignal,
  ): Promise<number | null> {
    const path = this.path(`runs/${runId}/artifacts/metadata/telemetry-${stepIndex}-otel.parquet`);
    const query = { step: String(stepIndex) };
    try {
      return await this.http.get(path, query, (answer) => readTelemetry(answer, target), signal);
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'notFound') return null;
      throw error;
    }
  }

  /** Whether the platform has kept no file of a run at all. @throws PlatformError */
  async hasNothing(runId: string, signal: AbortSignal): Promise<boolean> {
    try {
      return await this.ask(`runs/${runId}/artifacts/`, {}, isNullAnswer, signal);
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'notFound') return true;
      throw error;
    }
  }

  private async listPage(query: RunQuery, offset: number, signal: AbortSignal): Promise<PlatformPage> {
    const range = [query.createdFromUnixMs, query.createdToUnixMs].map((unixMs) => new Date(unixMs).toISOString());
    const parameters = {
      order_by: 'id',
      limit: String(PAGE_LIMIT),
      offset: String(offset),
      created_at__range: JSON.stringify(range),
      ...(query.jobId === null ? {} : { job_definition_id: query.jobId }),
    };
    try {
      return await this.ask('runs/', parameters, parsePageAnswer, signal);
    } catch (error) {
      throw await this.explain(error, `there is no list of runs in account ${this.accountId}`, signal);
    }
  }

  private path(rest: string): string {
    return `/api/v2/accounts/${this.accountId}/${rest}`;
  }

  /** The error for an answer of 404, which is either an account or a run that is not there. */
  private async explain(error: unknown, otherwise: string, signal: AbortSignal): Promise<unknown> {
    if (!(error instanceof PlatformError) || error.code !== 'notFound') return error;
    const isThere = await this.ask('', {}, () => true, signal).catch((reason: unknown) => {
      if (reason instanceof PlatformError && reason.code === 'notFound') return false;
      throw reason;
    });
    const message = isThere
      ? `${otherwise}. Check the number (it is in the address of the run's page)`
      : `there is no account ${this.accountId}, or the token may not see it. Check --account (the number in the platform's addresses) and RUN_BRIDGE_PLATFORM_TOKEN`;
    return new PlatformError('notFound', message, { cause: error });
  }

  private ask<T>(
    rest: string,
    query: Readonly<Record<string, string>>,
    parse: (value: unknown) => T,
    signal: AbortSignal,
  ): Promise<T> {
    return this.http.get(
      this.path(rest),
      query,
      async (answer) => parsed(answer.url, await readJson(answer, MAX_ANSWER_BYTES), parse),
      signal,
    );
  }
}

/** A file, or `null` where the answer says in JSON that there is none. */
async function readTelemetry(answer: PlatformAnswer, target: DownloadTarget): Promise<number | null> {
  if (!/^application\/json\b/i.test(answer.contentType)) return downloadFile(answer, target);
  const value = await readJson(answer, MAX_ANSWER_BYTES);
  if (parsed(answer.url, value, isNullAnswer)) return null;
  throw new PlatformError('malformed', `${answer.url}: answered with JSON in place of a Parquet file`);
}

function isWithin({ createdUnixMs }: PlatformRun, { createdFromUnixMs, createdToUnixMs }: RunQuery): boolean {
  return createdUnixMs === null || (createdUnixMs >= createdFromUnixMs && createdUnixMs <= createdToUnixMs);
}

function parsed<T>(url: string, value: unknown, parse: (value: unknown) => T): T {
  const envelope = parseEnvelope(value);
  if (envelope !== undefined && !envelope.isSuccess) {
    const problem = `${url}: it answered ${envelope.code ?? 'an error'} (${envelope.message ?? 'without a message'})`;
    throw new PlatformError(envelope.code === 404 ? 'notFound' : 'refused', problem);
  }
  try {
    return parse(value);
  } catch (cause) {
    if (!(cause instanceof ZodError)) throw cause;
    const [issue] = cause.issues;
    const place = `${issue?.path.join('.') || 'the answer'}: ${issue?.message ?? ''}`;
    throw new PlatformError(
      'malformed',
      `${url}: the answer is not the platform's (${place}). Check that --base-url is the platform's address for the API`,
      { cause },
    );
  }
}

/** Where a download goes, and how much it may be. */
export interface DownloadTarget {
  /** Made anew. */
  readonly path: string;
  readonly maxBytes: number;
  readonly onProgress?: (bytesRead: number, totalBytes: number) => void;
}

/**
 * Writes an answer's body to a file as it comes.
 * @returns its length in bytes.
 * @throws PlatformError `tooLarge`, as soon as that is known; `disk` when the file cannot be written.
 */
export async function downloadFile(answer: PlatformAnswer, target: DownloadTarget): Promise<number> {
  const { url, lengthBytes, body } = answer;
  if ((lengthBytes ?? 0) > target.maxBytes) throw tooLarge(url, target.maxBytes);
  const file = await written(target.path, open(target.path, 'w', 0o600));
  let byteCount = 0;
  try {
    for await (const chunk of body) {
      byteCount += chunk.byteLength;
      if (byteCount > target.maxBytes) throw tooLarge(url, target.maxBytes);
      await written(target.path, file.writeFile(chunk));
      target.onProgress?.(byteCount, lengthBytes ?? 0);
    }
  } finally {
    await file.close();
  }
  return byteCount;
}

function tooLarge(url: string, maxBytes: number): PlatformError {
  const limit = readableBytes(maxBytes);
  return new PlatformError('tooLarge', `${url}: larger than ${limit}`);
}

async function written<T>(path: string, writing: Promise<T>): Promise<T> {
  try {
    return await writing;
  } catch (cause) {
    const reason = errorCode(cause) === 'ENOSPC' ? 'the disk is full; free some space' : String(cause);
    throw new PlatformError('disk', `cannot write ${path}: ${reason}`, { cause });
  }
}
