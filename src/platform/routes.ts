import { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { V2_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticate.js';
import { success, successList } from '../api/envelope.js';
import { envelopeSchema, errorAnswers, jsonAnswer } from '../api/openapi/answers.js';
import {
  among,
  idIn,
  isHttps,
  ListFilters,
  listPart,
  MAX_LIMIT,
  type Parameters,
  refused,
  textsOf,
} from '../api/parameters.js';
import { textRedactor } from '../api/text-redactor.js';
import type { Clock } from '../core/clock.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { AccountStore } from '../storage/account-store.js';
import type {
  CatalogJob,
  CatalogRun,
  CatalogStep,
  JobCatalog,
  JobQuery,
  RunCatalog,
  RunQuery,
} from '../storage/run-catalog.js';
import type { RunStatus } from '../storage/run-status.js';
import {
  accountDocument,
  accountSchema,
  type JobDocument,
  type JobFacts,
  jobDocument,
  jobSchema,
  NO_LOGS,
  parseStatus,
  type RunDocument,
  type RunDocumentContext,
  runDocument,
  runSchema,
  type StepDocument,
  type StepLogs,
  stepDocument,
  stepSchema,
} from './documents.js';

const ACCOUNT_PATH = `${V2_PATH}/accounts/:accountId`;

/** The configuration of an account's job; `undefined` if it is not declared for that account. */
export type FactsOf = (job: Pick<CatalogJob, 'name' | 'accountId'>) => JobFacts | undefined;

/** What the routers of the platform's API work with. */
interface V2Deps {
  readonly catalog: RunCatalog & JobCatalog;
  readonly accounts: AccountStore;
  readonly factsOf: FactsOf;
  /** What a step wrote. */
  readonly logsOf: (step: CatalogStep) => Promise<StepLogs>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  /** Where others reach the pages; `null` for the address that a request was sent to. */
  readonly publicUrl: string | null;
  readonly clock: Clock;
}

/** Every router of version 2; each stands behind the API's tokens and has whole paths. */
export function platformRouters(deps: V2Deps): readonly Router[] {
  return [accountRouter(deps), runRouter(deps), jobRouter(deps)];
}

/** Runs and their steps. */
function runRouter(deps: V2Deps): Router {
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
    const context = { ...runContext(request, response, deps), hasDebugLogs: true };
    response.json(success(stepDocument(step, logs, context)));
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
    const logs = hasLogs ? await logsOf(deps, step, response) : NO_LOGS;
    const document = stepDocument(step, logs, { ...context, hasDebugLogs: related.has('debug_logs') });
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
  /** The filters in the response. */
  readonly filters: Readonly<Record<string, unknown>> & { readonly limit: number; readonly offset: number };
  readonly order: string;
}

const RUN_ORDERS = { id: 'id', created_at: 'created', finished_at: 'finished' } as const;

/** Reads the parameters of a list of runs; those that there are not are ignored. @throws ApiError 400 */
export function runListQuery(accountId: number, parameters: Parameters): RunListQuery {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, RUN_ORDERS);
  const filters = new ListFilters(parameters);
  const [status] = statusesOf(parameters, 'status') ?? [];
  filters.remember('status', status);
  const statuses = among(
    status && [status],
    // Terraform's provider writes it with one underscore.
    ...['status__in', 'status_in'].map((name) => filters.remember(name, statusesOf(parameters, name))),
  );
  // A run is started once, so its trigger has its number.
  const ids = among(filters.oneNumber('pk'), filters.numbers('pk__in'), filters.oneNumber('trigger_id'));
  const jobId = filters.number('job_definition_id');
  const environmentId = filters.number('environment_id');
  const projectIds = among(filters.oneNumber('project_id'), filters.numbers('project_id__in'));
  const idAbove = filters.number('id__gt');
  const createdRange = filters.range('created_at__range');
  const finishedRange = filters.range('finished_at__range');
  const engineVersions = among(filters.texts('dbt_version'), filters.texts('dbt_version__in'));
  // No run here has documentation or sources of its own, or defers to another.
  const isNone = [
    !filters.isActive(),
    filters.flag('has_docs_generated'),
    filters.flag('has_sources_generated'),
    filters.number('deferring_run_id') !== undefined,
  ].includes(true);
  return {
    query: {
      ...{ orderBy, isDescending, limit, offset },
      ...(isNone ? { ids: [] } : ids !== undefined && { ids }),
      ...(statuses !== undefined && { statuses }),
      ...(jobId !== undefined && { jobId }),
      ...(environmentId !== undefined && { environmentId }),
      ...(projectIds !== undefined && { projectIds }),
      ...(idAbove !== undefined && { idAbove }),
      ...(createdRange !== undefined && { createdRange }),
      ...(finishedRange !== undefined && { finishedRange }),
      ...(engineVersions !== undefined && { engineVersions }),
    },
    filters: { limit, offset, account_id: accountId, ...filters.given },
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

const JOBS_PATH = `${V2_PATH}/accounts/:accountId/jobs`;
const JOB_ORDERS = { id: 'id', name: 'name', created_at: 'created', updated_at: 'updated' } as const;

/** Jobs, read-only: they are declared in the configuration. */
function jobRouter({ catalog, factsOf }: Pick<V2Deps, 'catalog' | 'factsOf'>): Router {
  const router = Router();
  router.get(JOBS_PATH, authorize('jobs:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const { query, filters, order } = jobListQuery(accountId, request.query);
    const { items, totalCount } = await catalog.listJobs(accountId, query);
    const documents = items.map((job) => jobDocument(job, factsOf(job)));
    const pagination = { count: items.length, total_count: totalCount };
    response.json(successList(documents, { filters, order_by: order, pagination }));
  });
  router.get(`${JOBS_PATH}/:jobId`, authorize('jobs:read'), async (request, response) => {
    const job = await catalog.findJob(callerOf(response).accountId, idIn(request, 'jobId'));
    if (job === undefined) throw ApiError.notFound();
    response.json(success(jobDocument(job, factsOf(job))));
  });
  const refuse = () => {
    const message = 'Jobs are declared in run-bridge.yaml: add, change or remove it there, and restart run-bridge.';
    throw new ApiError(405, message, { Allow: 'GET' });
  };
  router.post(JOBS_PATH, authorize('jobs:read'), refuse);
  router.post(`${JOBS_PATH}/:jobId`, authorize('jobs:read'), refuse);
  router.delete(`${JOBS_PATH}/:jobId`, authorize('jobs:read'), refuse);
  return router;
}

function jobListQuery(accountId: number, parameters: Parameters) {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, JOB_ORDERS);
  const filters = new ListFilters(parameters);
  const ids = filters.oneNumber('pk');
  const projectIds = among(filters.oneNumber('project_id'), filters.numbers('project_id__in'));
  const environmentId = filters.number('environment_id');
  const nameContains = filters.text('name__icontains');
  const engineVersions = among(filters.texts('dbt_version__in'));
  // The program schedules none, and makes none itself.
  const isNone = [!filters.isActive(), filters.flag('triggers_schedule'), filters.flag('is_system')].includes(true);
  const query: JobQuery = {
    ...{ limit, offset, orderBy, isDescending },
    ...(isNone ? { ids: [] } : ids !== undefined && { ids }),
    ...(projectIds !== undefined && { projectIds }),
    ...(environmentId !== undefined && { environmentId }),
    ...(nameContains !== undefined && { nameContains }),
    ...(engineVersions !== undefined && { engineVersions }),
  };
  return { query, filters: { limit, offset, account_id: accountId, ...filters.given }, order };
}

/** Accounts: everybody sees their own. */
function accountRouter({ accounts }: Pick<V2Deps, 'accounts'>): Router {
  const router = Router();
  router.get(`${V2_PATH}/accounts`, authorize(null), async (_request, response) => {
    const account = await accounts.find(callerOf(response).accountId);
    const found = account === undefined ? [] : [accountDocument(account)];
    const pagination = { count: found.length, total_count: found.length };
    response.json(successList(found, { filters: { limit: MAX_LIMIT, offset: 0 }, order_by: 'id', pagination }));
  });
  router.get(`${V2_PATH}/accounts/:accountId`, authorize(null), async (_request, response) => {
    const account = await accounts.find(callerOf(response).accountId);
    if (account === undefined) throw ApiError.notFound();
    response.json(success(accountDocument(account)));
  });
  return router;
}

/** What runs are shown with in the answer to a request. */
export function runContext(
  request: Request,
  response: Response,
  { clock, factsOf, redaction, publicUrl }: Pick<V2Deps, 'clock' | 'factsOf' | 'redaction' | 'publicUrl'>,
): RunDocumentContext {
  return {
    nowUnixMs: clock.nowUnixMs(),
    redactor: textRedactor(callerOf(response), redaction),
    pagesUrl: publicUrl ?? `${isHttps(request) ? 'https' : 'http'}://${request.get('host') ?? request.hostname}`,
    isStartable: ({ job, accountId }) => (factsOf({ name: job.name, accountId })?.commandLines ?? []).length > 0,
  };
}

const integer = z.number().int();
const text = z.string();
const extraSchema = z.object({
  filters: z.looseObject({ limit: integer, offset: integer }),
  order_by: text,
  pagination: z.object({ count: integer, total_count: integer }),
});
const listParameters = { limit: text.optional(), offset: text.optional(), order_by: text.optional() };
const account = { accountId: text };
const include = {
  include_related: text.optional().meta({ description: 'a,b or ["a","b"]: trigger, job, environment, run_steps …' }),
};
const ACCOUNT = '/api/v2/accounts/{accountId}';
const of = (...tags: readonly string[]) => tags.map((tag) => `v2: ${tag}`);

/** A request that the hosted platform takes, and that is always refused here. */
function refusedChange(summary: string, path: z.ZodObject) {
  return { tags: of('jobs'), summary, requestParams: { path }, responses: errorAnswers(404, 405) };
}

/** What the routers of the hosted platform's API answer. */
export const V2_PATHS: ZodOpenApiPathsObject = {
  '/api/v2/accounts': {
    get: {
      tags: of('accounts'),
      summary: "The token's account",
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(accountSchema), extraSchema), 'One account.'),
        ...errorAnswers(),
      },
    },
  },
  [ACCOUNT]: {
    get: {
      tags: of('accounts'),
      summary: 'An account',
      requestParams: { path: z.object(account) },
      responses: { 200: jsonAnswer(envelopeSchema(accountSchema), 'The account.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/runs`]: {
    get: {
      tags: of('runs'),
      summary: 'Runs, filtered and sorted',
      requestParams: {
        path: z.object(account),
        query: z.object({
          ...listParameters,
          ...include,
          status: text.optional(),
          status__in: text.optional(),
          status_in: text.optional(),
          job_definition_id: text.optional(),
          environment_id: text.optional(),
          project_id: text.optional(),
          project_id__in: text.optional(),
          id__gt: text.optional(),
          pk: text.optional(),
          pk__in: text.optional(),
          trigger_id: text.optional(),
          dbt_version: text.optional(),
          dbt_version__in: text.optional(),
          has_docs_generated: text.optional(),
          has_sources_generated: text.optional(),
          deferring_run_id: text.optional(),
          state: text.optional(),
          created_at__range: text.optional(),
          finished_at__range: text.optional(),
        }),
      },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(runSchema), extraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
  },
  [`${ACCOUNT}/runs/{runId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A run',
      requestParams: { path: z.object({ ...account, runId: text }), query: z.object(include) },
      responses: { 200: jsonAnswer(envelopeSchema(runSchema), 'The run.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/steps/{stepId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A step of a run',
      requestParams: { path: z.object({ ...account, stepId: text }), query: z.object(include) },
      responses: { 200: jsonAnswer(envelopeSchema(stepSchema), 'The step.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/jobs`]: {
    get: {
      tags: of('jobs'),
      summary: 'Jobs, filtered and sorted',
      requestParams: {
        path: z.object(account),
        query: z.object({
          ...listParameters,
          project_id: text.optional(),
          project_id__in: text.optional(),
          environment_id: text.optional(),
          name__icontains: text.optional(),
          pk: text.optional(),
          dbt_version__in: text.optional(),
          triggers_schedule: text.optional(),
          is_system: text.optional(),
          state: text.optional(),
        }),
      },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(jobSchema), extraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
    post: refusedChange('Refused: jobs are declared in run-bridge.yaml', z.object(account)),
  },
  [`${ACCOUNT}/jobs/{jobId}`]: {
    get: {
      tags: of('jobs'),
      summary: 'A job',
      requestParams: { path: z.object({ ...account, jobId: text }) },
      responses: { 200: jsonAnswer(envelopeSchema(jobSchema), 'The job.'), ...errorAnswers(404) },
    },
    post: refusedChange('Refused: jobs are changed in run-bridge.yaml', z.object({ ...account, jobId: text })),
    delete: refusedChange('Refused: jobs are removed from run-bridge.yaml', z.object({ ...account, jobId: text })),
  },
};
