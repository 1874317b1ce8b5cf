import { type Clock, RetryPolicy, retry, type Timer } from '../../core/clock.js';
import { exchange } from '../../core/http-client.js';
import { startOf } from '../../core/text.js';
import type { TraceId } from '../../record/telemetry-record.js';
import { API_PATH } from '../../run/api-path.js';
import {
  apiErrorSchema,
  cancellationSchema,
  finishResultOf,
  finishResultSchema,
  stepPositionSchema,
} from '../../run/execution-api.js';
import { endingDocument, stepStartDocument } from '../../run/step-documents.js';
import { type StepRegistry, StepRegistryError } from '../../run/step-registry.js';
import type { FinishResult } from '../../storage/execution-store.js';
import type { CommandEnding, StepPosition, StepStart } from '../../storage/steps.js';
import { parseAnswer } from './bridge.js';

/** What a registry over HTTP needs. */
export interface HttpStepRegistryDeps {
  readonly clock: Clock;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
  /** Sent with every request, for example a token. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How long one answer may take, in milliseconds. */
const ANSWER_MS = 5_000;
/** No more is read of an answer, in bytes; a bridge's are a few hundred. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** How often something is said before it is given up, and how long to wait before the next time. */
const MAX_ATTEMPTS = 4;
const BACKOFF = new RetryPolicy({ baseMs: 200, maxMs: 800, maxRetryAfterMs: 800 });
/** How often a running step is reported again, in milliseconds: a bridge that hears nothing for ten minutes closes it. */
const ALIVE_MS = 60_000;

/** A reason is cut here, in characters. */
const MAX_REASON_LENGTH = 2_000;

/** An answer that is no success. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** The registry of a bridge that runs elsewhere. A running step is reported again every minute, until it ends or `close()`. */
export class HttpStepRegistry implements StepRegistry {
  private readonly begun = new Map<string, StepStart>();
  /** Steps that say that they are alive until their artifacts are uploaded, beyond their end. */
  private readonly uploading = new Set<string>();
  private readonly timers = new Map<string, Timer>();

  /** @param baseUrl of the bridge, either port, for example `http://127.0.0.1:4380` */
  constructor(
    private readonly baseUrl: string,
    private readonly deps: HttpStepRegistryDeps,
  ) {}

  async register(start: StepStart): Promise<StepPosition> {
    this.begun.set(start.stepId, start);
    this.sayAgainLater(start);
    const answer = await this.ask('PUT', stepPath(start.stepId), stepStartDocument(start));
    if (!('ok' in answer)) throw toError(answer);
    return read(stepPositionSchema, answer.ok);
  }

  async attach(stepId: string, traceId: TraceId): Promise<void> {
    await this.tell(stepId, `${stepPath(stepId)}/traces/${traceId}`);
  }

  async expectArtifacts(stepId: string, paths: readonly string[]): Promise<void> {
    this.uploading.add(stepId);
    await this.tell(stepId, `${stepPath(stepId)}/artifacts`, { paths });
  }

  async endArtifacts(stepId: string, reason: string | null): Promise<void> {
    await this.tell(stepId, `${stepPath(stepId)}/artifacts/end`, {
      reason: reason === null ? null : startOf(reason, MAX_REASON_LENGTH),
    });
    this.uploading.delete(stepId);
    this.forget(stepId);
  }

  async end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<void> {
    const body = { ending: endingDocument(ending), ended_unix_ms: endedUnixMs };
    await this.tell(stepId, `${stepPath(stepId)}/end`, body);
    if (!this.uploading.has(stepId)) this.forget(stepId);
  }

  async finish(runKey: string): Promise<FinishResult> {
    const answer = await this.ask('POST', '/executions/finish', { run_key: runKey });
    if ('ok' in answer) return finishResultOf(read(finishResultSchema, answer.ok));
    if (answer.code === 'unknown_run') return { kind: 'unknownRun' };
    throw toError(answer);
  }

  /** Asks once: callers poll anyway. */
  async isCancelled(stepId: string): Promise<boolean | null> {
    try {
      const answer = await this.askOnce('GET', `${stepPath(stepId)}/cancellation`);
      // A bridge of before has no such path.
      if (!('ok' in answer)) return answer.code === 'unknown_path' ? null : false;
      return cancellationSchema.safeParse(answer.ok).data?.cancelled ?? null;
    } catch {
      return false;
    }
  }

  /** Says nothing any more. */
  close(): void {
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }

  /** A bridge that does not know the step was not reached at its beginning, or has another data folder now: it is begun again. */
  private async tell(stepId: string, path: string, body?: object): Promise<void> {
    let answer = await this.ask('PUT', path, body);
    const start = this.begun.get(stepId);
    if (!('ok' in answer) && answer.code === 'unknown_step' && start !== undefined) {
      await this.ask('PUT', stepPath(stepId), stepStartDocument(start));
      answer = await this.ask('PUT', path, body);
    }
    if (!('ok' in answer)) throw toError(answer);
  }

  private forget(stepId: string): void {
    this.timers.get(stepId)?.cancel();
    this.timers.delete(stepId);
    this.begun.delete(stepId);
  }

  private sayAgainLater(start: StepStart): void {
    this.timers.get(start.stepId)?.cancel();
    const timer = this.deps.clock.after(ALIVE_MS, () => {
      // A bridge that cannot be reached now gets it the next time.
      this.ask('PUT', stepPath(start.stepId), stepStartDocument(start)).catch(() => undefined);
      this.sayAgainLater(start);
    });
    this.timers.set(start.stepId, timer);
  }

  /** Asks again where the bridge cannot be reached, or cannot do it just now. @throws StepRegistryError when it never could. */
  private async ask(method: 'PUT' | 'POST', path: string, body?: object): Promise<{ ok: unknown } | Refusal> {
    const { clock, signal } = this.deps;
    const attempt = async () => {
      const answer = await this.askOnce(method, path, body);
      if ('ok' in answer || answer.status < 500) return answer;
      throw toError(answer);
    };
    const delayMs = (_error: unknown, failedAttempts: number) => BACKOFF.delayMs(failedAttempts, null);
    try {
      return await retry(attempt, { clock, signal, maxAttempts: MAX_ATTEMPTS, delayMs });
    } catch (cause) {
      if (cause instanceof StepRegistryError) throw cause;
      const message = `the bridge at ${this.baseUrl} cannot be reached; check that it runs and that --to is right`;
      throw new StepRegistryError('unavailable', message, { cause });
    }
  }

  private async askOnce(
    method: 'GET' | 'PUT' | 'POST',
    path: string,
    body?: object,
  ): Promise<{ ok: unknown } | Refusal> {
    const url = new URL(`${this.baseUrl.replace(/\/+$/, '')}${API_PATH}${path}`);
    const headers = { ...this.deps.headers, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const answer = await exchange(
      { method, url, headers, ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }), onStale() {} },
      { signal: AbortSignal.timeout(ANSWER_MS), maxBodyBytes: MAX_ANSWER_BYTES },
    );
    if (answer.bodyEnd instanceof Error) throw answer.bodyEnd;
    const document = parseAnswer(answer.body);
    if (answer.status >= 200 && answer.status < 300) return { ok: document };
    const error = apiErrorSchema.safeParse(document).data?.error;
    if (answer.status === 401) {
      const message = `the bridge at ${this.baseUrl} asks for a token: set RUN_BRIDGE_TOKEN to one that is good there`;
      return { status: 401, code: 'unauthenticated', message };
    }
    const message = error?.message ?? `it answered ${answer.status}; is a run-bridge listening there?`;
    return { status: answer.status, code: error?.code ?? '', message };
  }
}

function stepPath(stepId: string): string {
  return `/executions/steps/${encodeURIComponent(stepId)}`;
}

function toError({ status, code, message }: Refusal): StepRegistryError {
  if (code === 'unknown_step') return new StepRegistryError('unknownStep', message);
  return new StepRegistryError(status >= 500 ? 'unavailable' : 'refused', message);
}

/** @throws StepRegistryError for what no run-bridge answers. */
function read<T>(schema: { safeParse(value: unknown): { data?: T | undefined } }, value: unknown): T {
  const { data } = schema.safeParse(value);
  if (data !== undefined) return data;
  throw new StepRegistryError('refused', 'the response is not from a run-bridge of this version');
}
