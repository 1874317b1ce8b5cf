import express, { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { V2_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success } from '../api/envelope.js';
import { answersWith } from '../api/openapi/answers.js';
import { idIn } from '../api/parameters.js';
import type { Clock } from '../core/clock.js';
import type { FactsOf, runShape } from '../platform/feature.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { CatalogRun, RunCatalog } from '../storage/run-catalog.js';
import type { CatalogJob } from '../storage/scope-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import type { JobService, RetryResult } from './service.js';

/** Makes the API documents of runs. */
type RunShape = Awaited<ReturnType<typeof runShape>>;

/** Dependencies of the router. */
export interface JobRunDeps {
  readonly catalog: RunCatalog;
  readonly factsOf: FactsOf;
  /** Makes the document of a run. */
  readonly shape: RunShape;
  /** The redaction setting; `textRedactor` decides who sees unredacted texts. */
  readonly redaction: RedactionLevel;
  /** The base URL of the pages for others; `null` for the address of each request. */
  readonly publicUrl: string | null;
  readonly clock: Clock;
  readonly openService: () => Promise<JobService>;
}

/** The message for a run that cannot be cancelled. */
export const OUT_OF_REACH =
  'This run cannot be interrupted from here: its telemetry comes straight from the engine. Interrupt it where it runs; what "run-bridge exec" runs can be canceled from here.';

const ACCOUNT_PATH = `${V2_PATH}/accounts/:accountId`;
/** The largest body: space for a cause and for steps, which fit into a program's argument. */
const MAX_BODY_BYTES = 128 * 1024;
/** When to try again after the queue was full, in seconds. */
const RETRY_AFTER_S = '30';

/**
 * Starts and cancels runs of jobs. The commands come from the configuration, or are steps that it allows for the job: `cause` is stored as the run's reason, other fields that would change the
 * commands are refused, and all further fields are ignored.
 */
export function jobRunRouter({
  catalog,
  factsOf,
  shape,
  redaction,
  publicUrl,
  clock,
  openService,
}: JobRunDeps): Router {
  const router = Router();
  // Some clients send bodies without a content type, or no body.
  const json = express.json({ type: () => true, limit: MAX_BODY_BYTES, strict: false });
  router.post(`${ACCOUNT_PATH}/jobs/:jobId/run`, authorize('jobs:run'), json, async (request, response) => {
    const job = await foundJob(request, response, catalog);
    const service = await openService();
    const { reason, steps } = startIn(request, job);
    const result = await service.start(job.accountId, job.name, reason, steps);
    await answer(request, response, service, result, job.name);
  });
  router.post(`${ACCOUNT_PATH}/jobs/:jobId/rerun`, authorize('jobs:run'), json, async (request, response) => {
    const job = await foundJob(request, response, catalog);
    const service = await openService();
    const result = await service.rerun(job.accountId, job.name, reasonOf(startIn(request, job)));
    await answer(request, response, service, result, job.name);
  });
  router.get(`${ACCOUNT_PATH}/runs/:runId/retry`, authorize('runs:read'), async (request, response) => {
    const run = await foundRun(request, response, catalog);
    const stop = await (await openService()).stopOfRun(changeOf(run));
    if (stop.kind !== 'stopped') throw notRetryable(stop.kind);
    const steps = await catalog.stepsOf(run.accountId, [run.id]);
    const failed = steps.find(({ status }) => status === RUN_STATUS.error || status === RUN_STATUS.cancelled);
    const { skippedCommands: skipped } = stop;
    const { redactor } = shape.runContext(request, response, { clock, factsOf, redaction, publicUrl });
    response.json(
      success({
        failed_step: failed === undefined ? null : shape.commandOf(failed, redactor),
        skipped_steps: run.stepsOverride === null ? skipped : skipped.map((line) => redactor.command(line)),
      }),
    );
  });
  router.post(`${ACCOUNT_PATH}/runs/:runId/retry`, authorize('jobs:run'), json, async (request, response) => {
    const run = await foundRun(request, response, catalog);
    const service = await openService();
    const { name } = run.job;
    const reason = reasonOf(startIn(request, { name, accountId: run.accountId }));
    await answer(request, response, service, await service.retry(changeOf(run), reason), name);
  });
  router.post(`${ACCOUNT_PATH}/runs/:runId/cancel`, authorize('runs:cancel'), json, async (request, response) => {
    const run = await foundRun(request, response, catalog);
    const result = await (await openService()).cancel(changeOf(run));
    if (result.kind === 'outOfReach') {
      throw new ApiError(409, OUT_OF_REACH);
    }
    response.json(success(documentOf(request, response, await foundRun(request, response, catalog))));
  });
  return router;

  async function answer(request: Request, response: Response, service: JobService, result: RetryResult, job: string) {
    const runId = runIdOf(result, job);
    const run = await catalog.findRun(callerOf(response).accountId, runId);
    if (run === undefined) throw ApiError.notFound();
    // The response says "queued", so the run may start only now.
    service.startQueued();
    response.json(success(documentOf(request, response, run)));
  }

  /** Reads the body of a request. @throws ApiError 400 if it asks for something that runs do not support */
  function startIn(request: Request, job: Pick<CatalogJob, 'name' | 'accountId'>): RequestedStart {
    const body = bodySchema.safeParse(request.body ?? {});
    if (!body.success) throw new ApiError(400, `The body is wrong: ${z.prettifyError(body.error)}`);
    const { cause, steps_override: steps, ...rest } = body.data;
    const configured = factsOf(job)?.commandLines ?? [];
    const isSame =
      steps != null && steps.length === configured.length && steps.every((step, at) => step === configured[at]);
    const refused = Object.entries(rest).flatMap(([name, value]) => (REFUSED.has(name) && isSet(value) ? [name] : []));
    if (refused.length > 0) {
      throw new ApiError(
        400,
        `${refused.join(', ')} cannot be taken: a run does what run-bridge.yaml declares for the job. Leave it out.`,
      );
    }
    return {
      reason: cause == null || cause.trim() === '' ? null : cause,
      steps: steps == null || steps.length === 0 || isSame ? null : steps,
    };
  }

  function documentOf(request: Request, response: Response, run: CatalogRun) {
    const related = { job: null, hasTrigger: true, environment: null, steps: [] };
    return shape.runDocument(
      run,
      related,
      shape.runContext(request, response, { clock, factsOf, redaction, publicUrl }),
    );
  }
}

/** A run that a body requests. */
interface RequestedStart {
  readonly reason: string | null;
  /** Steps that replace the job's; `null` for the job's. */
  readonly steps: readonly string[] | null;
}

/** Returns the reason of a run that repeats another with the same steps. @throws ApiError 400 if the body has steps */
function reasonOf({ reason, steps }: RequestedStart): string | null {
  if (steps === null) return reason;
  throw new ApiError(
    400,
    'steps_override cannot be taken: a run that starts another one anew has the steps of that. Leave it out, or POST to jobs/{id}/run/.',
  );
}

/** Returns the job that a path names, in the caller's account. @throws ApiError 404 */
export async function foundJob(
  request: Request,
  response: Response,
  catalog: Pick<RunCatalog, 'findJob'>,
): Promise<CatalogJob> {
  const job = await catalog.findJob(callerOf(response).accountId, idIn(request, 'jobId'));
  if (job === undefined) throw ApiError.notFound();
  return job;
}

/** Returns the run that a path names, in the caller's account. @throws ApiError 404 */
export async function foundRun(
  request: Request,
  response: Response,
  catalog: Pick<RunCatalog, 'findRun'>,
): Promise<CatalogRun> {
  const run = await catalog.findRun(callerOf(response).accountId, idIn(request, 'runId'));
  if (run === undefined) throw ApiError.notFound();
  return run;
}

const bodySchema = z.looseObject({
  cause: z.string().max(2_000).nullish(),
  steps_override: z.array(z.string()).nullish(),
});

/** Fields that would change what a run does. They are refused, so that no client believes that they have an effect. */
const REFUSED: ReadonlySet<string> = new Set([
  'git_sha',
  'git_branch',
  'schema_override',
  'target_name_override',
  'threads_override',
  'dbt_version_override',
  'generate_docs_override',
  'timeout_seconds_override',
  'azure_pull_request_id',
  'github_pull_request_id',
  'gitlab_merge_request_id',
  'non_native_pull_request_id',
]);

/** Whether a field has a value; clients send unused fields as null, empty or false. */
function isSet(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '' && value !== false;
}

/** Returns a run in the form that the service needs. */
export function changeOf({ accountId, id, job, status }: CatalogRun) {
  return { accountId, runId: id, job: job.name, status };
}

/** Returns the id of a queued run. @throws ApiError if no run was queued */
export function runIdOf(result: RetryResult, job: string): number {
  switch (result.kind) {
    case 'queued':
      return result.runId;
    case 'noCommands':
      throw new ApiError(
        409,
        `The job ${JSON.stringify(job)} has no commands that could be run: declare them in run-bridge.yaml under jobs, and restart run-bridge.`,
      );
    case 'stepsRefused':
      throw new ApiError(400, result.problem);
    case 'full':
      throw new ApiError(
        429,
        `${result.waitingCount} runs ${result.limit === 'perJob' ? 'of this job ' : ''}wait already, and no more may; try again later, or cancel some.`,
        { 'Retry-After': RETRY_AFTER_S },
      );
    case 'notOver':
    case 'succeeded':
      throw notRetryable(result.kind);
  }
}

function notRetryable(kind: 'notOver' | 'succeeded'): ApiError {
  return kind === 'notOver'
    ? new ApiError(409, 'The run has not ended: cancel it, or wait for its end.')
    : new ApiError(409, 'The run succeeded, so there is nothing to retry; POST to jobs/{id}/run/ for a new one.');
}

const ACCOUNT = '/api/v2/accounts/{accountId}';
const ofJob = z.object({ accountId: z.string(), jobId: z.string() });
const ofRun = z.object({ accountId: z.string(), runId: z.string() });
const retrySchema = z
  .object({
    failed_step: z.string().nullable().meta({ description: 'its command; null where none was begun' }),
    skipped_steps: z.array(z.string()).meta({ description: "the job's commands after it, if it runs them here" }),
  })
  .meta({ id: 'RunFailureDetails' });

const stepsSchema = z.array(z.string()).nullish().meta({
  description: "command lines such as `dbt build --select orders` in place of the job's, if its steps-override is true",
});

/** The API description of the router. @param runSchema schema of a response's `data` */
export function jobRunPaths(runSchema: RunShape['runSchema']): ZodOpenApiPathsObject {
  return {
    [`${ACCOUNT}/jobs/{jobId}/run`]: runPost('Start a run of a job', ofJob, runSchema, { steps_override: stepsSchema }),
    [`${ACCOUNT}/jobs/{jobId}/rerun`]: runPost("Start a job's latest run anew", ofJob, runSchema),
    [`${ACCOUNT}/runs/{runId}/retry`]: {
      get: {
        tags: ['v2: jobs'],
        summary: 'Where a retry of a failed run resumes',
        requestParams: { path: ofRun },
        responses: answersWith(retrySchema, 'Where it stopped.', [404, 409]),
      },
      ...runPost('Start a run that failed anew, from the step that failed', ofRun, runSchema),
    },
    [`${ACCOUNT}/runs/{runId}/cancel`]: runPost('Cancel a run', ofRun, runSchema),
  };
}

/** Describes a POST that starts or ends a run. @param more fields of its body besides `cause` */
function runPost(
  summary: string,
  path: z.ZodObject,
  runSchema: RunShape['runSchema'],
  more: z.ZodRawShape = {},
): ZodOpenApiPathsObject[string] {
  const schema = z.looseObject({
    cause: z.string().optional().meta({ description: "kept as the run's reason" }),
    ...more,
  });
  return {
    post: {
      tags: ['v2: jobs'],
      summary,
      requestParams: { path },
      requestBody: { content: { 'application/json': { schema } } },
      responses: answersWith(runSchema, 'The run.', [404, 409, 413, 415]),
    },
  };
}
