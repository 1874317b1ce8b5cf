import express, { type NextFunction, type Request, type RequestHandler, type Response, Router } from 'express';
import type { z } from 'zod';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../core/sender-gate.js';
import { snakeCased } from '../core/snake-case.js';
import { refusalOf } from '../otlp/refusal.js';
import { stepIdFor } from '../record/attributes.js';
import { parseTraceId } from '../record/telemetry-record.js';
import { API_PATH } from '../run/api-path.js';
import {
  artifactsEndSchema,
  expectedArtifactsSchema,
  finishDocument,
  finishSchema,
  MAX_API_BODY_BYTES,
  MAX_ARTIFACT_LIST_BYTES,
  stepEndSchema,
  stepIdSchema,
  stepStartOf,
  stepStartSchema,
} from '../run/execution-api.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import { type StepRegistry, StepRegistryError, type StepRegistryErrorCode } from '../run/step-registry.js';

/** Dependencies of the router. */
export interface ExecutionRouterDeps {
  readonly registry: Pick<LocalStepRegistry, keyof StepRegistry>;
  readonly logger: Logger;
  /** Called before the body is read. Default: anybody may report runs, for the first account. */
  readonly gate?: SenderGate | undefined;
}

/** A failed request: its status, and a line that says how to fix it. */
class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const STATUS: Readonly<Record<StepRegistryErrorCode, number>> = { unknownStep: 404, refused: 400, unavailable: 503 };

/** Serves the step registry over HTTP, for other programs that run commands; bodies and responses are JSON. */
export function executionRouter({ registry, logger, gate }: ExecutionRouterDeps): Router {
  const router = Router();
  const json = express.json({ limit: MAX_API_BODY_BYTES });
  if (gate !== undefined) router.use(`${API_PATH}/executions`, senderGuard(gate));
  const steps = `${API_PATH}/executions/steps/:stepId`;
  router.put(steps, json, async (request, response) => {
    const start = stepStartOf(stepIdIn(request, response), parsed(stepStartSchema, bodyOf(request)));
    const accountId = senderAccountIn(response);
    const runOf = start.runOf === undefined ? {} : { runOf: stepIdFor(accountId, start.runOf) };
    const owned = accountId === null ? start : { ...start, ...runOf, accountId };
    response.json(snakeCased(await registry.register(owned, 'remote')));
  });
  router.put(`${steps}/traces/:traceId`, async (request, response) => {
    const traceId = parseTraceId(String(request.params.traceId));
    if (traceId === undefined) throw new ApiError(400, 'invalid', 'the trace id must be 32 hexadecimal characters');
    await registry.attach(stepIdIn(request, response), traceId);
    response.status(204).end();
  });
  router.put(`${steps}/end`, json, async (request, response) => {
    const { ending, ended_unix_ms } = parsed(stepEndSchema, bodyOf(request));
    await registry.end(stepIdIn(request, response), ending, ended_unix_ms);
    response.status(204).end();
  });
  router.put(`${steps}/artifacts`, express.json({ limit: MAX_ARTIFACT_LIST_BYTES }), async (request, response) => {
    const { paths } = parsed(expectedArtifactsSchema, bodyOf(request));
    await registry.expectArtifacts(stepIdIn(request, response), paths);
    response.status(204).end();
  });
  router.put(`${steps}/artifacts/end`, json, async (request, response) => {
    const { reason } = parsed(artifactsEndSchema, bodyOf(request));
    await registry.endArtifacts(stepIdIn(request, response), reason);
    response.status(204).end();
  });
  router.get(`${steps}/cancellation`, async (request, response) => {
    response.json({ cancelled: await registry.isCancelled(stepIdIn(request, response)) });
  });
  router.post(`${API_PATH}/executions/finish`, json, async (request, response) => {
    const { run_key } = parsed(finishSchema, bodyOf(request));
    const result = await registry.finish(run_key, senderAccountIn(response) ?? undefined);
    if (result.kind === 'unknownRun')
      throw new ApiError(404, 'unknown_run', `no run ${JSON.stringify(run_key)} is known`);
    response.json(finishDocument(result));
  });
  router.use(`${API_PATH}/executions`, (request) => {
    throw new ApiError(404, 'unknown_path', `${request.method} ${request.originalUrl} is not a route of this API`);
  });
  router.use(API_PATH, (error: unknown, _request: Request, response: Response, next: NextFunction) => {
    // The client may have gone; that is no error of this program.
    if (response.destroyed || response.closed) return;
    if (response.headersSent) next(error);
    else refuse(error, response, logger);
  });
  return router;
}

/** Reads the step's id, which is unique within an account. */
function stepIdIn(request: Request, response: Response): string {
  return stepIdFor(senderAccountIn(response), parsed(stepIdSchema, request.params.stepId));
}

function bodyOf(request: Request): unknown {
  if (request.is('application/json') === false) {
    throw new ApiError(415, 'media_type', 'send a body with Content-Type: application/json');
  }
  return request.body;
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => `${path.join('.') || 'the value'}: ${message}`);
  throw new ApiError(400, 'invalid', problems.join('; '));
}

function refuse(error: unknown, response: Response, logger: Logger): void {
  const { status, code, message } = toApiError(error);
  if (status === 500) {
    logger.error({ stack: error instanceof Error ? error.stack : String(error) }, 'request failed');
  }
  if (status === 503) response.set('Retry-After', '1');
  response.status(status).json({ error: { code, message } });
}

function toApiError(error: unknown): Pick<ApiError, 'status' | 'code' | 'message'> {
  if (error instanceof ApiError) return error;
  if (error instanceof StepRegistryError) {
    const code = error.code === 'unknownStep' ? 'unknown_step' : error.code;
    return { status: STATUS[error.code], code, message: error.message };
  }
  // Express reports bodies that it cannot read by errors with a status.
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 413) {
    return { status, code: 'too_large', message: `the body is larger than ${MAX_API_BODY_BYTES} bytes` };
  }
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status, code: 'invalid', message: `the request cannot be read: ${String(error)}` };
  }
  return { status: 500, code: 'failed', message: 'run-bridge failed on this request; see its log' };
}

/** Guards the API of runs: callers that may send telemetry may report runs. Refuses others in the format of that API. */
export function senderGuard(gate: SenderGate): RequestHandler {
  return async (request, response, next) => {
    try {
      response.locals.senderAccountId = await gate.admit(
        request.headers.authorization,
        request.socket.remoteAddress ?? '',
      );
    } catch (error) {
      const { status, reason, message, headers } = refusalOf(error);
      response
        .status(status)
        .set(headers)
        .json({ error: { code: reason, message } });
      return;
    }
    next();
  };
}

/** Returns the account for which the caller reports runs, after `senderGuard`; `null` for the first. */
export function senderAccountIn(response: Response): number | null {
  const { senderAccountId }: { readonly senderAccountId?: number | null } = response.locals;
  return senderAccountId ?? null;
}
