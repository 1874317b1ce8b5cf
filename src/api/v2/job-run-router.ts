import express, { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import type { JobDesk, RetryResult } from '../../job/job-desk.js';
import type { CatalogJob, CatalogRun } from '../../store/run-catalog.js';
import { ApiError } from '../api-error.js';
import { V2_PATH } from '../api-router.js';
import { authorize, callerOf } from '../authenticate.js';
import { success } from '../envelope.js';
import { idIn } from './id-in.js';
import { runContext } from './run-context.js';
import { runDocument } from './run-document.js';
import type { V2Deps } from './v2-deps.js';

/** What the router works with. */
export interface JobRunDeps extends Pick<V2Deps, 'catalog' | 'factsOf' | 'redaction' | 'clock'> {
  readonly openDesk: () => Promise<JobDesk>;
}

const ACCOUNT_PATH = `${V2_PATH}/accounts/:accountId`;
/** A cause and a few names are all that there is to say. */
const MAX_BODY_BYTES = 64 * 1024;
/** When to try again where the queue is full, in seconds. */
const RETRY_AFTER_S = '30';

/**
 * Starts runs of jobs, and cancels runs. What is run is what the configuration declares: `cause` is kept as the run's
 * reason, what would change the commands is refused, and whatever else a body holds has no effect.
 */
export function jobRunRouter({ catalog, factsOf, redaction, clock, openDesk }: JobRunDeps): Router {
  const router = Router();
  // Clients send bodies without a type as well, and none at all.
  const json = express.json({ type: () => true, limit: MAX_BODY_BYTES, strict: false });
  router.post(`${ACCOUNT_PATH}/jobs/:jobId/run`, authorize('jobs:run'), json, async (request, response) => {
    const job = await jobIn(request, response);
    const desk = await openDesk();
    const result = await desk.start(job.accountId, job.name, reasonIn(request, job));
    await answer(request, response, desk, result, job.name);
  });
  router.post(`${ACCOUNT_PATH}/jobs/:jobId/rerun`, authorize('jobs:run'), json, async (request, response) => {
    const job = await jobIn(request, response);
    const desk = await openDesk();
    const result = await desk.rerun(job.accountId, job.name, reasonIn(request, job));
    await answer(request, response, desk, result, job.name);
  });
  router.post(`${ACCOUNT_PATH}/runs/:runId/retry`, authorize('jobs:run'), json, async (request, response) => {
    const run = await runIn(request, response);
    const desk = await openDesk();
    const { name } = run.job;
    const reason = reasonIn(request, { name, accountId: run.accountId });
    await answer(request, response, desk, await desk.retry(toChange(run), reason), name);
  });
  router.post(`${ACCOUNT_PATH}/runs/:runId/cancel`, authorize('runs:cancel'), json, async (request, response) => {
    const run = await runIn(request, response);
    const result = await (await openDesk()).cancel(toChange(run));
    if (result.kind === 'outOfReach') {
      throw new ApiError(
        409,
        'Nobody can be asked to interrupt this run: its telemetry comes straight from the engine. Interrupt it where it runs; what "run-bridge exec" runs can be cancelled from here.',
      );
    }
    response.json(success(documentOf(request, response, await runIn(request, response))));
  });
  return router;

  async function answer(request: Request, response: Response, desk: JobDesk, result: RetryResult, job: string) {
    const runId = runIdOf(result, job);
    const run = await catalog.findRun(callerOf(response).accountId, runId);
    if (run === undefined) throw ApiError.notFound();
    // Its answer says that it is queued: it may begin from here on.
    desk.goOn();
    response.json(success(documentOf(request, response, run)));
  }

  async function jobIn(request: Request, response: Response): Promise<CatalogJob> {
    const job = await catalog.findJob(callerOf(response).accountId, idIn(request, 'jobId'));
    if (job === undefined) throw ApiError.notFound();
    return job;
  }

  async function runIn(request: Request, response: Response): Promise<CatalogRun> {
    const run = await catalog.findRun(callerOf(response).accountId, idIn(request, 'runId'));
    if (run === undefined) throw ApiError.notFound();
    return run;
  }

  /** @throws ApiError 400 for what would change the commands */
  function reasonIn(request: Request, job: Pick<CatalogJob, 'name' | 'accountId'>): string | null {
    const body = bodySchema.safeParse(request.body ?? {});
    if (!body.success) throw new ApiError(400, `The body is wrong: ${z.prettifyError(body.error)}`);
    const { cause, steps_override: steps, ...rest } = body.data;
    const configured = factsOf(job)?.commandLines ?? [];
    const isSame =
      steps != null && steps.length === configured.length && steps.every((step, at) => step === configured[at]);
    const refused = [
      ...(steps == null || steps.length === 0 || isSame ? [] : ['steps_override']),
      ...Object.entries(rest).flatMap(([name, value]) => (REFUSED.has(name) && isSet(value) ? [name] : [])),
    ];
    if (refused.length === 0) return cause == null || cause.trim() === '' ? null : cause;
    throw new ApiError(
      400,
      `${refused.join(', ')} cannot be taken: a run does what run-bridge.yaml declares for the job, and nothing else. Leave it out.`,
    );
  }

  function documentOf(request: Request, response: Response, run: CatalogRun) {
    const related = { job: null, hasTrigger: true, hasEnvironment: false, steps: [] };
    return runDocument(run, related, runContext(request, response, { clock, factsOf, redaction }));
  }
}

const bodySchema = z.looseObject({
  cause: z.string().max(2_000).nullish(),
  steps_override: z.array(z.string()).nullish(),
});

/** What would change what a run does: whoever asks for it must not believe that it was done. */
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

/** Clients send what they do not use as null, empty or false. */
function isSet(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '' && value !== false;
}

function toChange({ accountId, id, job, status }: CatalogRun) {
  return { accountId, runId: id, job: job.name, status };
}

/** @throws ApiError where no run was queued */
function runIdOf(result: RetryResult, job: string): number {
  switch (result.kind) {
    case 'queued':
      return result.runId;
    case 'noCommands':
      throw new ApiError(
        409,
        `The job ${JSON.stringify(job)} has no commands that could be run: declare them in run-bridge.yaml under jobs, and start run-bridge anew.`,
      );
    case 'full':
      throw new ApiError(
        429,
        `${result.waitingCount} runs ${result.limit === 'perJob' ? 'of this job ' : ''}wait already, and no more may; try again later, or cancel some.`,
        { 'Retry-After': RETRY_AFTER_S },
      );
    case 'notOver':
      throw new ApiError(409, 'The run is not over: cancel it, or wait for its end.');
    case 'succeeded':
      throw new ApiError(409, 'The run succeeded, so there is nothing to retry; POST to jobs/{id}/run/ for a new one.');
  }
}
