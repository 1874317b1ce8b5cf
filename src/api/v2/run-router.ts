import { type Request, type Response, Router } from 'express';
import type { CatalogRun, CatalogStep, RunQuery } from '../../storage/run-catalog.js';
import type { RunStatus } from '../../storage/run-status.js';
import { ApiError } from '../api-error.js';
import { V2_PATH } from '../api-router.js';
import { authorize, callerOf } from '../authenticate.js';
import { success, successList } from '../envelope.js';
import { textRedactor } from '../text-redactor.js';
import { among } from './among.js';
import { idIn } from './id-in.js';
import { type JobDocument, jobDocument } from './job-document.js';
import { listPart } from './list-parameters.js';
import { numberOf, numbersOf, type Parameters, rangeOf, refused, textsOf } from './query-values.js';
import { runContext } from './run-context.js';
import { type RunDocument, runDocument } from './run-document.js';
import { parseStatus } from './status-words.js';
import { NO_LOGS, type StepDocument, type StepLogs, stepDocument } from './step-document.js';
import type { V2Deps } from './v2-deps.js';

const ACCOUNT_PATH = `${V2_PATH}/accounts/:accountId`;

/** Runs and their steps. */
export function runRouter(deps: V2Deps): Router {
  const { catalog } = deps;
  const router = Router();
  router.get(`${ACCOUNT_PATH}/runs`, authorize('runs:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const { query, filters, order } = runListQuery(accountId, request.query);
    const { items, totalCount } = await catalog.listRuns(accountId, query);
    // Logs are part of one run's answer only: those of a hundred would be megabytes.
    const documents = await runDocuments(deps, items, request, response, false);
    const pagination = { count: items.length, total_count: totalCount };
    response.json(successList(documents, { filters, order_by: order, pagination }));
  });
  router.get(`${ACCOUNT_PATH}/runs/:runId`, authorize('runs:read'), async (request, response) => {
    const run = await catalog.findRun(callerOf(response).accountId, idIn(request, 'runId'));
    if (run === undefined) throw ApiError.notFound();
    const [document] = await runDocuments(deps, [run], request, response, true);
    response.json(success(document));
  });
  router.get(`${ACCOUNT_PATH}/steps/:stepId`, authorize('runs:read'), async (request, response) => {
    const step = await catalog.findStep(callerOf(response).accountId, idIn(request, 'stepId'));
    if (step === undefined) throw ApiError.notFound();
    const logs = await logsOf(deps, step, response);
    response.json(success(stepDocument(step, logs, runContext(request, response, deps))));
  });
  return router;
}

async function runDocuments(
  deps: V2Deps,
  runs: readonly CatalogRun[],
  request: Request,
  response: Response,
  hasLogs: boolean,
): Promise<readonly RunDocument[]> {
  const context = runContext(request, response, deps);
  const related = new Set(textsOf(request.query, 'include_related') ?? []);
  const [first] = runs;
  const accountId = first?.accountId ?? 0;
  const runIds = runs.map(({ id }) => id);
  const steps = related.has('run_steps') ? await deps.catalog.stepsOf(accountId, runIds) : [];
  const stepsByRun = new Map<number, StepDocument[]>();
  for (const step of steps) {
    const { logs, debugLogs } = hasLogs ? await logsOf(deps, step, response) : NO_LOGS;
    const document = stepDocument(step, { logs, debugLogs: related.has('debug_logs') ? debugLogs : '' }, context);
    stepsByRun.set(step.runId, [...(stepsByRun.get(step.runId) ?? []), document]);
  }
  const jobs = related.has('job') ? await jobDocuments(deps, accountId, runs) : new Map<number, JobDocument>();
  return runs.map((run) =>
    runDocument(
      run,
      {
        job: jobs.get(run.job.id) ?? null,
        hasTrigger: related.has('trigger'),
        hasEnvironment: related.has('environment'),
        steps: stepsByRun.get(run.id) ?? [],
      },
      context,
    ),
  );
}

/** What a step wrote, as far as the caller may see it. */
async function logsOf(deps: V2Deps, step: CatalogStep, response: Response): Promise<StepLogs> {
  const redactor = textRedactor(callerOf(response), deps.redaction);
  const { logs, debugLogs } = await deps.logsOf(step);
  return { logs: redactor.text(logs), debugLogs: redactor.text(debugLogs) };
}

async function jobDocuments(deps: V2Deps, accountId: number, runs: readonly CatalogRun[]) {
  const ids = [...new Set(runs.map(({ job }) => job.id))];
  const jobs = await deps.catalog.findJobs(accountId, ids);
  return new Map(jobs.map((job) => [job.id, jobDocument(job, deps.factsOf(job))]));
}

/** A list of runs that was asked for. */
export interface RunListQuery {
  readonly query: RunQuery;
  /** What the answer says that it was filtered by. */
  readonly filters: Readonly<Record<string, unknown>> & { readonly limit: number; readonly offset: number };
  readonly order: string | null;
}

const ORDERS = { id: 'id', created_at: 'created', finished_at: 'finished' } as const;

/** Reads the parameters of a list of runs; those that there are not are ignored. @throws ApiError 400 */
export function runListQuery(accountId: number, parameters: Parameters): RunListQuery {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, ORDERS);
  const [status] = statusesOf(parameters, 'status') ?? [];
  const statusesAmong = statusesOf(parameters, 'status__in');
  const jobId = numberOf(parameters, 'job_definition_id');
  const environmentId = numberOf(parameters, 'environment_id');
  const projectId = numberOf(parameters, 'project_id');
  const projectsAmong = numbersOf(parameters, 'project_id__in');
  const idAbove = numberOf(parameters, 'id__gt');
  const createdRange = rangeOf(parameters, 'created_at__range');
  const finishedRange = rangeOf(parameters, 'finished_at__range');
  const statuses = among(status, statusesAmong);
  const projectIds = among(projectId, projectsAmong);
  return {
    query: {
      ...{ orderBy, isDescending, limit, offset },
      ...(statuses !== undefined && { statuses }),
      ...(jobId !== undefined && { jobId }),
      ...(environmentId !== undefined && { environmentId }),
      ...(projectIds !== undefined && { projectIds }),
      ...(idAbove !== undefined && { idAbove }),
      ...(createdRange !== undefined && { createdRange }),
      ...(finishedRange !== undefined && { finishedRange }),
    },
    filters: {
      ...{ limit, offset, account_id: accountId },
      ...(status !== undefined && { status }),
      ...(statusesAmong !== undefined && { status__in: statusesAmong }),
      ...(jobId !== undefined && { job_definition_id: jobId }),
      ...(environmentId !== undefined && { environment_id: environmentId }),
      ...(projectId !== undefined && { project_id: projectId }),
      ...(projectsAmong !== undefined && { project_id__in: projectsAmong }),
      ...(idAbove !== undefined && { id__gt: idAbove }),
      ...(createdRange !== undefined && { created_at__range: textsOf(parameters, 'created_at__range') }),
      ...(finishedRange !== undefined && { finished_at__range: textsOf(parameters, 'finished_at__range') }),
    },
    order,
  };
}

/** An empty list is as if it had not come. */
function statusesOf(parameters: Parameters, name: string): readonly RunStatus[] | undefined {
  const statuses = textsOf(parameters, name)?.map((text) => {
    const status = parseStatus(text);
    if (status === undefined) throw refused(name, 'is not of 1, 2, 3, 10, 20, 30');
    return status;
  });
  return statuses?.length === 0 ? undefined : statuses;
}
