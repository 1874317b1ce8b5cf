import { extname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { V2_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success } from '../api/envelope.js';
import { idIn, parsedParameters } from '../api/parameters.js';
import type { Logger } from '../core/logger.js';
import { API_PATH } from '../run/api-path.js';
import {
  type Artifact,
  type ArtifactPath,
  type ByteRange,
  encodedArtifactPath,
  type OpenArtifact,
  stepTelemetryOf,
} from '../storage/artifacts.js';
import type { CatalogStep } from '../storage/run-catalog.js';
import { parseRunNumber } from '../storage/state-tables.js';
import { findStep, readArtifactParameter, readStepParameter, sentence, toArtifactApiError } from './requests.js';
import { noArtifactOf, type RunArtifacts } from './run-artifacts.js';

const nameSchema = z.string().min(1).max(200);

/** Which runs of a job are asked for an artifact. */
export const jobRunsSchema = z.object({
  job: nameSchema,
  project: nameSchema.optional(),
  environment: nameSchema.optional(),
  last_good: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'true: only runs that ended with success' }),
});

/** Dependencies of the router. */
export interface ArtifactRouterDeps {
  readonly artifacts: RunArtifacts;
  readonly logger: Logger;
}

/**
 * Serves `…/runs/{id}/artifacts/` and `…/runs/{id}/artifacts/{path}`, the artifacts of the step `?step=N` (default: the last one), and `…/jobs/{id}/artifacts/{path}`, those of the job's latest run
 * that has ended. `GET /api/run-bridge/v1/artifacts/{path}?job=NAME` is that of the newest run that has it; `Content-Location` says which.
 */
export function artifactRouter({ artifacts, logger }: ArtifactRouterDeps): Router {
  const router = Router();
  const base = `${V2_PATH}/accounts/:accountId/runs/:runId/artifacts`;
  router.get(base, authorize('artifacts:read'), async (request, response) => {
    const steps = await stepsOf(callerOf(response).accountId, request.params.runId);
    const index = readStepParameter(request.query.step);
    const step = findStep(steps, index);
    // A run without steps has no artifacts, which is no error.
    if (step === undefined && index !== null) throw ApiError.notFound();
    const paths = step === undefined ? [] : await artifacts.list(step).catch(fail);
    response.json(success(paths));
  });
  router.get(`${base}/*path`, authorize('artifacts:read'), async (request, response) => {
    await send(request, response, await stepsOf(callerOf(response).accountId, request.params.runId));
  });
  const ofJob = `${V2_PATH}/accounts/:accountId/jobs/:jobId/artifacts/*path`;
  router.get(ofJob, authorize('artifacts:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const runId = await artifacts.latestRunOf(accountId, idIn(request, 'jobId'));
    if (runId === undefined) throw ApiError.notFound();
    await send(request, response, await stepsOf(accountId, String(runId)));
  });
  router.get(`${API_PATH}/artifacts/*path`, authorize('artifacts:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const { job, project, environment, last_good } = parsedParameters(jobRunsSchema, request.query);
    const path = readArtifactParameter(request.params.path);
    if (path === undefined) throw ApiError.notFound();
    const of = { jobName: job, projectName: project, environmentName: environment, isGood: last_good === 'true' };
    const found = await artifacts.ofJob(accountId, of, path).catch(fail);
    if (found === undefined) throw new ApiError(404, sentence(noArtifactOf(of, path)));
    const { step, artifact } = found;
    response.set(
      'Content-Location',
      `${V2_PATH}/accounts/${accountId}/runs/${step.runId}/artifacts/${encodedArtifactPath(path)}?step=${step.index}`,
    );
    await sendArtifact(request, response, { artifact, open: opener(step, path) });
  });
  return router;

  function opener(step: CatalogStep, path: ArtifactPath): SendableArtifact['open'] {
    return (range) => artifacts.open(step, path, range).catch(fail);
  }

  async function send(request: Request, response: Response, steps: readonly CatalogStep[]): Promise<void> {
    const path = readArtifactParameter(request.params.path);
    if (path === undefined) throw ApiError.notFound();
    // The name of telemetry contains its step.
    const index = readStepParameter(request.query.step) ?? stepTelemetryOf(path)?.stepIndex ?? null;
    const step = findStep(steps, index);
    const artifact = step && (await artifacts.stat(step, path).catch(fail));
    if (step === undefined || artifact === undefined) throw ApiError.notFound();
    await sendArtifact(request, response, { artifact, open: opener(step, path) });
  }

  async function stepsOf(accountId: number, runId: unknown) {
    const id = parseRunNumber(runId);
    const steps = id === undefined ? undefined : await artifacts.stepsOf(accountId, id);
    if (steps === undefined) throw ApiError.notFound();
    return steps;
  }

  function fail(error: unknown): never {
    throw toArtifactApiError(error, logger);
  }
}

/** An artifact to send. */
export interface SendableArtifact {
  readonly artifact: Artifact;
  /** Opens the artifact or a part of it; `undefined` if it was removed meanwhile. */
  open(range?: ByteRange): Promise<OpenArtifact | undefined>;
}

/**
 * Answers GET or HEAD with an unchanged file: complete, or one requested range (206, 416), or 304 if the client has it. A request for several ranges gets the complete file. It is sent as an
 * attachment, so that no browser executes it.
 * @throws ApiError
 */
export async function sendArtifact(request: Request, response: Response, sendable: SendableArtifact): Promise<void> {
  const { artifact } = sendable;
  describe(response, artifact);
  if (request.fresh) {
    response.status(304).end();
    return;
  }
  const range = rangeIn(request, response, artifact);
  if (request.method === 'HEAD') {
    begin(response, artifact, range);
    response.end();
    return;
  }
  const opened = await sendable.open(range);
  // If the file was replaced after the check, a range would belong to different content.
  const isReplaced = opened?.artifact.etag !== artifact.etag;
  if (opened === undefined || (isReplaced && range !== undefined)) {
    opened?.content.destroy();
    throw new ApiError(503, 'The artifact is being replaced; ask again.', { 'Retry-After': '1' });
  }
  try {
    if (isReplaced) describe(response, opened.artifact);
    begin(response, opened.artifact, range);
  } catch (error) {
    opened.content.destroy();
    throw error;
  }
  // The client may have gone; it recognises an interrupted response by its length.
  await pipeline(opened.content, response).catch(() => response.destroy());
}

function describe(response: Response, { path, etag, modifiedUnixMs }: Artifact): void {
  response.attachment(nameOf(path));
  response.set({
    'Content-Type': contentTypeOf(path),
    ETag: etag,
    'Last-Modified': new Date(modifiedUnixMs).toUTCString(),
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'X-Content-Type-Options': 'nosniff',
  });
}

function nameOf(path: ArtifactPath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns the requested range; `undefined` for the complete file. @throws ApiError 416 */
function rangeIn(request: Request, response: Response, { sizeBytes }: Artifact): ByteRange | undefined {
  if (!isSameAsBefore(request, response)) return undefined;
  const ranges = request.range(sizeBytes);
  if (ranges === undefined || ranges === -2) return undefined;
  if (ranges === -1) {
    for (const name of ['Content-Disposition', 'ETag', 'Last-Modified']) response.removeHeader(name);
    throw new ApiError(416, `The range is outside the artifact, which has ${sizeBytes} bytes.`, {
      'Content-Range': `bytes */${sizeBytes}`,
    });
  }
  const [first, ...others] = ranges;
  if (first === undefined || others.length > 0 || ranges.type !== 'bytes') return undefined;
  return { from: first.start, to: first.end + 1 };
}

/** Checks `If-Range`: a range is valid only for the content that the client has. */
function isSameAsBefore(request: Request, response: Response): boolean {
  const before = request.get('If-Range');
  return before === undefined || before === response.get('ETag') || before === response.get('Last-Modified');
}

function begin(response: Response, { sizeBytes }: Artifact, range: ByteRange | undefined): void {
  const { from, to } = range ?? { from: 0, to: sizeBytes };
  response.status(range === undefined ? 200 : 206).set('Content-Length', String(to - from));
  if (range !== undefined) response.set('Content-Range', `bytes ${from}-${to - 1}/${sizeBytes}`);
}

const TEXT = 'text/plain; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = {
  '.parquet': 'application/x-parquet',
  '.json': 'application/json',
  '.jsonl': 'application/x-ndjson',
  '.sql': TEXT,
  '.log': TEXT,
  '.txt': TEXT,
  '.yml': TEXT,
  '.yaml': TEXT,
  '.csv': 'text/csv; charset=utf-8',
};

const UNKNOWN = 'application/octet-stream';

/** All types that an artifact may have. */
export const ARTIFACT_CONTENT_TYPES: readonly string[] = [...new Set([UNKNOWN, ...Object.values(TYPES)])];

/** Returns the content type of an artifact by its name. Files that a browser would execute (HTML, SVG, scripts) are bytes, like unknown ones. */
export function contentTypeOf(path: string): string {
  return TYPES[extname(path).toLowerCase()] ?? UNKNOWN;
}
