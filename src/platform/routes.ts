import express, { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { V2_PATH, V3_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success, successList } from '../api/envelope.js';
import { answersWith, envelopeSchema, errorAnswers, jsonAnswer } from '../api/openapi/answers.js';
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
import { textRedactor } from '../api/permissions.js';
import { containing, levelFor } from '../api/run-search.js';
import type { Clock } from '../core/clock.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { AccountStore } from '../storage/account-store.js';
import type { CatalogRun, CatalogStep, RunCatalog, RunQuery } from '../storage/run-catalog.js';
import type {
  CatalogEnvironment,
  CatalogJob,
  CatalogProject,
  JobQuery,
  LatestRuns,
  ScopeQuery,
} from '../storage/scope-catalog.js';
import type { RunStatus } from '../storage/state-tables.js';
import {
  accountDocument,
  accountSchema,
  type EnvironmentDocument,
  environmentDocument,
  environmentSchema,
  type JobDocument,
  type JobFacts,
  jobDocument,
  jobSchema,
  LISTS_OF_VERSION_2,
  NO_LOGS,
  type ProjectDocument,
  parseStatus,
  projectDocument,
  projectSchema,
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
  readonly catalog: RunCatalog;
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
  return [accountRouter(deps), runRouter(deps), jobRouter(deps), scopeRouter(deps), declaredRouter()];
}

/** Runs and their steps. */
function runRouter(deps: V2Deps): Router {
  const { catalog } = deps;
  const router = Router();
  router.get(`${ACCOUNT_PATH}/runs`, authorize('runs:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const level = levelFor(callerOf(response), deps.redaction);
    const { query, filters, order } = runListQuery(accountId, request.query, level);
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
  const environments = related.has('environment')
    ? await environmentsOf(
        deps,
        accountId,
        runs.map(({ environment }) => environment.id),
      )
    : new Map<number, EnvironmentDocument>();
  const jobs = related.has('job') ? await jobsOfRuns(deps, accountId, runs) : new Map<number, JobDocument>();
  return runs.map((run) =>
    runDocument(
      run,
      {
        job: jobs.get(run.job.id) ?? null,
        hasTrigger: related.has('trigger'),
        environment: environments.get(run.environment.id) ?? null,
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

async function jobsOfRuns(deps: V2Deps, accountId: number, runs: readonly CatalogRun[]) {
  const ids = [...new Set(runs.map(({ job }) => job.id))];
  const jobs = await deps.catalog.findJobs(accountId, ids);
  return new Map(jobs.map((job) => [job.id, jobDocument(job, deps.factsOf(job))]));
}

/** Environments by their ids, which may repeat. */
async function environmentsOf({ catalog }: Pick<V2Deps, 'catalog'>, accountId: number, ids: readonly number[]) {
  const each = [...new Set(ids)];
  const { items } = await catalog.listEnvironments(accountId, { ...ALL, ids: each, limit: each.length });
  return new Map(items.map((one) => [one.id, environmentDocument(one)]));
}

async function jobDocuments(
  deps: V2Deps,
  jobs: readonly CatalogJob[],
  request: Request,
  response: Response,
): Promise<readonly JobDocument[]> {
  const { catalog, factsOf } = deps;
  const { accountId } = callerOf(response);
  const related = new Set(textsOf(request.query, 'include_related') ?? []);
  const environments = related.has('environment')
    ? await environmentsOf(
        deps,
        accountId,
        jobs.map(({ environmentId }) => environmentId),
      )
    : new Map<number, EnvironmentDocument>();
  const kinds = (['most_recent_run', 'most_recent_completed_run'] as const).filter((kind) => related.has(kind));
  const jobIds = jobs.map(({ id }) => id);
  const latest = kinds.length === 0 ? new Map<number, LatestRuns>() : await catalog.latestRunsOf(accountId, jobIds);
  const runIds = [...latest.values()].flatMap((one) =>
    kinds.flatMap((kind) => (kind === 'most_recent_run' ? one.latest : one.completed) ?? []),
  );
  const ids = [...new Set(runIds)];
  const { items: runs } = await catalog.listRuns(accountId, { ...ALL, ids, limit: ids.length });
  const context = runContext(request, response, deps);
  const nothing = { job: null, hasTrigger: false, environment: null, steps: [] };
  const documents = new Map(runs.map((run) => [run.id, runDocument(run, nothing, context)]));
  return jobs.map((job) => {
    const { latest: run, completed } = latest.get(job.id) ?? { latest: null, completed: null };
    return jobDocument(job, factsOf(job), {
      environment: environments.get(job.environmentId) ?? null,
      latestRun: related.has('most_recent_run') ? (documents.get(run ?? 0) ?? null) : null,
      latestCompletedRun: related.has('most_recent_completed_run') ? (documents.get(completed ?? 0) ?? null) : null,
    });
  });
}

/** All of a list, in the order of their ids. */
const ALL = { orderBy: 'id', isDescending: false, offset: 0 } as const;

/** A list of runs that was asked for. */
export interface RunListQuery {
  readonly query: RunQuery;
  /** The filters in the response. */
  readonly filters: Readonly<Record<string, unknown>> & { readonly limit: number; readonly offset: number };
  readonly order: string;
}

const RUN_ORDERS = { id: 'id', created_at: 'created', finished_at: 'finished' } as const;

/**
 * Reads the parameters of a list of runs; those that there are not are ignored.
 * @param level what the caller is shown of texts
 * @throws ApiError 400
 */
export function runListQuery(accountId: number, parameters: Parameters, level: RedactionLevel): RunListQuery {
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
  const version = filters.text('dbt_version');
  const engineVersions = among(version === undefined ? undefined : [version], filters.texts('dbt_version__in'));
  const text = filters.text('text');
  // No run here has documentation or sources of its own, or defers to another.
  const isNone = [
    !filters.isActive(),
    filters.flag('has_docs_generated'),
    filters.flag('has_sources_generated'),
    filters.number('deferring_run_id') !== undefined,
  ].includes(true);
  return {
    query: {
      ...{ orderBy, isDescending, limit, offset, ids: isNone ? [] : ids, idAbove, statuses },
      ...{ jobId, environmentId, projectIds, createdRange, finishedRange, engineVersions },
      ...(text !== undefined && containing(text, level)),
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

/** Programs such as Dagster make a job for themselves, and use the one that is there by their name. They show the beginning of an answer alone. */
function hintOfNewJob(body: unknown): string {
  const name = newJobSchema.safeParse(body).data?.name;
  const called = name === undefined ? 'the name' : `the name ${JSON.stringify(name.slice(0, 100))}`;
  return ` A program that wants a job of its own finds one there by ${called}, the project and the environment that it asks for; "steps-override: true" lets it run its own steps.`;
}

const newJobSchema = z.looseObject({ name: z.string() });
/** Most of a body that would add something, of which nothing but a name is read. */
const MAX_NEW_BYTES = 64 * 1024;

/** Jobs, read-only: they are declared in the configuration. */
function jobRouter(deps: V2Deps): Router {
  const { catalog } = deps;
  const router = Router();
  router.get(JOBS_PATH, authorize('jobs:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const { query, filters, order } = jobListQuery(accountId, request.query);
    const { items, totalCount } = await catalog.listJobs(accountId, query);
    const documents = await jobDocuments(deps, items, request, response);
    const pagination = { count: items.length, total_count: totalCount };
    response.json(successList(documents, { filters, order_by: order, pagination }));
  });
  router.get(`${JOBS_PATH}/:jobId`, authorize('jobs:read'), async (request, response) => {
    const job = await catalog.findJob(callerOf(response).accountId, idIn(request, 'jobId'));
    if (job === undefined) throw ApiError.notFound();
    const [document] = await jobDocuments(deps, [job], request, response);
    response.json(success(document));
  });
  return router;
}

/** Both versions have the same projects and environments. */
const SCOPE_PATHS = [V2_PATH, V3_PATH].map((version) => `${version}/accounts/:accountId`);

/** Lists of what the configuration declares: a request to add, change or remove one of them is refused. */
const DECLARED = [
  { noun: 'Jobs', path: JOBS_PATH, one: `${JOBS_PATH}/:jobId` },
  ...SCOPE_PATHS.flatMap((base) => [
    { noun: 'Projects', path: `${base}/projects`, one: `${base}/projects/:projectId` },
    ...[`${base}/projects/:projectId/environments`, `${base}/environments`].map((path) => ({
      ...{ noun: 'Environments', path, one: `${path}/:environmentId` },
    })),
  ]),
];

/** Refuses these requests; they are not part of the description. */
function declaredRouter(): Router {
  const router = Router();
  const mayRead = authorize('jobs:read');
  const json = express.json({ type: () => true, limit: MAX_NEW_BYTES, strict: false });
  for (const { noun, path, one } of DECLARED) {
    const refuse = (hint = '') => {
      const message = `${noun} are declared in run-bridge.yaml: add, change or remove them there, and restart run-bridge.`;
      throw new ApiError(405, message + hint, { Allow: 'GET' });
    };
    router.post(path, mayRead, json, ({ body }) => refuse(noun === 'Jobs' ? hintOfNewJob(body) : ''));
    router.post(one, mayRead, () => refuse());
    router.delete(one, mayRead, () => refuse());
  }
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
  // The program schedules none, makes none itself, and does not examine what another engine could run.
  const isNone = [
    !filters.isActive(),
    ...['triggers_schedule', 'is_system', 'is_fusion_ready'].map((name) => filters.flag(name)),
  ].includes(true);
  const query: JobQuery = {
    ...{ limit, offset, orderBy, isDescending, ids: isNone ? [] : ids },
    ...{ projectIds, environmentId, nameContains, engineVersions },
  };
  return { query, filters: { limit, offset, account_id: accountId, ...filters.given }, order };
}

const SCOPE_ORDERS = JOB_ORDERS;
/** Environments within a list of projects; more are left out. */
const MAX_ENVIRONMENTS = 1_000;

/** Projects and environments, read-only: they come into being with the configuration and the runs that name them. */
function scopeRouter({ catalog }: Pick<V2Deps, 'catalog'>): Router {
  const router = Router();
  const mayRead = authorize('jobs:read');
  router.get(`${V2_PATH}/accounts/:accountId/notifications`, mayRead, (request, response) => {
    const { limit, offset, order } = listPart(request.query, SCOPE_ORDERS);
    const pagination = { count: 0, total_count: 0 };
    response.json(successList([], { filters: { limit, offset }, order_by: order, pagination }));
  });
  // By the names of variables: clients read an object.
  router.get(
    `${V3_PATH}/accounts/:accountId/projects/:projectId/environment-variables/job`,
    mayRead,
    async (request, response) => {
      await projectIn(request, response);
      response.json(success({}));
    },
  );
  for (const base of SCOPE_PATHS) {
    router.get(`${base}/projects`, mayRead, answerProjects);
    router.get(`${base}/projects/:projectId`, mayRead, async (request, response) => {
      const [document] = await projectDocuments(request, [await projectIn(request, response)]);
      response.json(success(document));
    });
    router.get(`${base}/projects/:projectId/environments`, mayRead, async (request, response) => {
      await answerEnvironments(request, response, (await projectIn(request, response)).id);
    });
    router.get(`${base}/projects/:projectId/environments/:environmentId`, mayRead, answerEnvironment);
    router.get(`${base}/environments`, mayRead, (request, response) => answerEnvironments(request, response));
    router.get(`${base}/environments/:environmentId`, mayRead, answerEnvironment);
  }
  return router;

  async function answerProjects(request: Request, response: Response): Promise<void> {
    const { accountId } = callerOf(response);
    const { query, filters, order } = projectListQuery(accountId, request.query);
    const { items, totalCount } = await catalog.listProjects(accountId, query);
    const pagination = { count: items.length, total_count: totalCount };
    const documents = await projectDocuments(request, items);
    response.json(successList(documents, { filters, order_by: order, pagination }));
  }

  async function projectDocuments(request: Request, projects: readonly CatalogProject[]) {
    const [first] = projects;
    const environments = new Map<number, EnvironmentDocument[]>();
    if (first !== undefined && (textsOf(request.query, 'include_related') ?? []).includes('environments')) {
      const projectIds = projects.map(({ id }) => id);
      const query = { ...ALL, projectIds, limit: MAX_ENVIRONMENTS };
      for (const one of (await catalog.listEnvironments(first.accountId, query)).items) {
        environments.set(one.projectId, [...(environments.get(one.projectId) ?? []), environmentDocument(one)]);
      }
    }
    return projects.map((project) => projectDocument(project, environments.get(project.id)));
  }

  async function answerEnvironment(request: Request, response: Response): Promise<void> {
    const ids = [idIn(request, 'environmentId')];
    const projectIds = request.params.projectId === undefined ? {} : { projectIds: [idIn(request, 'projectId')] };
    const query = { ...ALL, limit: 1, ids, ...projectIds };
    const { items } = await catalog.listEnvironments(callerOf(response).accountId, query);
    const [document] = await environmentDocuments(request, items);
    if (document === undefined) throw ApiError.notFound();
    response.json(success(document));
  }

  async function answerEnvironments(request: Request, response: Response, projectId?: number) {
    const { accountId } = callerOf(response);
    const { query, filters, order } = environmentListQuery(accountId, request.query, projectId);
    const { items, totalCount } = await catalog.listEnvironments(accountId, query);
    const pagination = { count: items.length, total_count: totalCount };
    const documents = await environmentDocuments(request, items);
    response.json(successList(documents, { filters, order_by: order, pagination }));
  }

  async function environmentDocuments(request: Request, environments: readonly CatalogEnvironment[]) {
    const [first] = environments;
    const projects = new Map<number, ProjectDocument>();
    if (first !== undefined && (textsOf(request.query, 'include_related') ?? []).includes('project')) {
      const ids = [...new Set(environments.map(({ projectId }) => projectId))];
      const { items } = await catalog.listProjects(first.accountId, { ...ALL, ids, limit: ids.length });
      for (const project of items) projects.set(project.id, projectDocument(project));
    }
    const lists = request.path.startsWith(V2_PATH) ? LISTS_OF_VERSION_2 : {};
    return environments.map((each) => ({
      ...environmentDocument(each, projects.get(each.projectId) ?? null),
      ...lists,
    }));
  }

  async function projectIn(request: Request, response: Response) {
    const query = { ...ALL, limit: 1, ids: [idIn(request, 'projectId')] };
    const [project] = (await catalog.listProjects(callerOf(response).accountId, query)).items;
    if (project === undefined) throw ApiError.notFound();
    return project;
  }
}

function projectListQuery(accountId: number, parameters: Parameters) {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, SCOPE_ORDERS);
  const filters = new ListFilters(parameters);
  const query = { ...scopeQuery(filters), orderBy, isDescending, limit, offset };
  return { query, filters: { limit, offset, account_id: accountId, ...filters.given }, order };
}

/** @param projectId of the path */
function environmentListQuery(accountId: number, parameters: Parameters, projectId: number | undefined) {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, SCOPE_ORDERS);
  const filters = new ListFilters(parameters);
  const projectIds = among(
    filters.oneNumber('project_id'),
    filters.numbers('project_id__in'),
    filters.remember('project_id', projectId) === undefined ? undefined : [projectId ?? 0],
  );
  const engineVersions = among(filters.texts('dbt_version'), filters.texts('dbt_version__in'));
  const query = { ...scopeQuery(filters), orderBy, isDescending, limit, offset, projectIds, engineVersions };
  return { query, filters: { limit, offset, account_id: accountId, ...filters.given }, order };
}

/** Filters of projects and environments alike. */
function scopeQuery(filters: ListFilters): Pick<ScopeQuery, 'ids' | 'idAbove' | 'name' | 'nameContains'> {
  const ids = among(filters.oneNumber('pk'), filters.numbers('pk__in'));
  const above = [filters.number('pk__gt'), filters.number('id__gt')].filter((id) => id !== undefined);
  const name = filters.text('name');
  const nameContains = filters.text('name__icontains');
  const idAbove = above.length > 0 ? Math.max(...above) : undefined;
  return { ids: filters.isActive() ? ids : [], idAbove, name, nameContains };
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
const includeInJobs = {
  include_related: text.optional().meta({ description: 'environment, most_recent_run, most_recent_completed_run' }),
};
const ACCOUNT = '/api/v2/accounts/{accountId}';
const of = (...tags: readonly string[]) => tags.map((tag) => `v2: ${tag}`);

const scopeParameters = {
  ...listParameters,
  include_related: text.optional(),
  pk: text.optional(),
  pk__in: text.optional(),
  pk__gt: text.optional(),
  id__gt: text.optional(),
  name: text.optional(),
  name__icontains: text.optional(),
  state: text.optional(),
};
const environmentParameters = {
  ...scopeParameters,
  project_id: text.optional(),
  project_id__in: text.optional(),
  dbt_version: text.optional(),
  dbt_version__in: text.optional(),
};

/** Projects and environments of one version. */
function scopePaths(version: 'v2' | 'v3'): ZodOpenApiPathsObject {
  const base = `/api/${version}/accounts/{accountId}`;
  const tag = `${version}: projects and environments`;
  const get = (summary: string, path: z.ZodObject, schema: z.ZodType, query: z.ZodObject = z.object({})) => ({
    get: {
      tags: [tag],
      summary,
      requestParams: { path, query },
      responses: { 200: jsonAnswer(schema, 'As it is shown.'), ...errorAnswers(404) },
    },
  });
  const list = (schema: z.ZodType) => envelopeSchema(z.array(schema), extraSchema);
  const ofProject = z.object({ ...account, projectId: text });
  const ofEnvironment = z.object({ ...account, environmentId: text });
  const ofBoth = z.object({ ...account, projectId: text, environmentId: text });
  const related = z.object({ include_related: text.optional() });
  const ofAccount = z.object(account);
  const environments = list(environmentSchema);
  const variables = z.record(z.string(), z.never()).meta({ description: 'always empty' });
  const ofVersion: ZodOpenApiPathsObject =
    base === ACCOUNT
      ? { [`${base}/notifications`]: get('Notifications: none', ofAccount, list(z.never())) }
      : {
          [`${base}/projects/{projectId}/environment-variables/job`]: get(
            'Environment variables of a job: none',
            ofProject,
            envelopeSchema(variables),
            z.object({ job_definition_id: text.optional() }),
          ),
        };
  return {
    ...ofVersion,
    [`${base}/projects`]: get('Projects', ofAccount, list(projectSchema), z.object(scopeParameters)),
    [`${base}/projects/{projectId}`]: get('A project', ofProject, envelopeSchema(projectSchema)),
    [`${base}/projects/{projectId}/environments`]: get(
      'Environments of a project',
      ofProject,
      environments,
      z.object(environmentParameters),
    ),
    [`${base}/projects/{projectId}/environments/{environmentId}`]: get(
      'An environment of a project',
      ofBoth,
      envelopeSchema(environmentSchema),
      related,
    ),
    [`${base}/environments`]: get('Environments', ofAccount, environments, z.object(environmentParameters)),
    [`${base}/environments/{environmentId}`]: get(
      'An environment',
      ofEnvironment,
      envelopeSchema(environmentSchema),
      related,
    ),
  };
}

/** What the routers of the hosted platform's API answer. */
export const V2_PATHS: ZodOpenApiPathsObject = {
  ...scopePaths('v2'),
  ...scopePaths('v3'),
  '/api/v2/accounts': {
    get: {
      tags: of('accounts'),
      summary: "The token's account",
      responses: answersWith(z.array(accountSchema), 'One account.', [], extraSchema),
    },
  },
  [ACCOUNT]: {
    get: {
      tags: of('accounts'),
      summary: 'An account',
      requestParams: { path: z.object(account) },
      responses: answersWith(accountSchema, 'The account.', [404]),
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
      responses: answersWith(z.array(runSchema), 'A page.', [404], extraSchema),
    },
  },
  [`${ACCOUNT}/runs/{runId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A run',
      requestParams: { path: z.object({ ...account, runId: text }), query: z.object(include) },
      responses: answersWith(runSchema, 'The run.', [404]),
    },
  },
  [`${ACCOUNT}/steps/{stepId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A step of a run',
      requestParams: { path: z.object({ ...account, stepId: text }), query: z.object(include) },
      responses: answersWith(stepSchema, 'The step.', [404]),
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
          ...includeInJobs,
          project_id: text.optional(),
          project_id__in: text.optional(),
          environment_id: text.optional(),
          name__icontains: text.optional(),
          pk: text.optional(),
          dbt_version__in: text.optional(),
          triggers_schedule: text.optional(),
          is_system: text.optional(),
          is_fusion_ready: text.optional(),
          state: text.optional(),
        }),
      },
      responses: answersWith(z.array(jobSchema), 'A page.', [404], extraSchema),
    },
  },
  [`${ACCOUNT}/jobs/{jobId}`]: {
    get: {
      tags: of('jobs'),
      summary: 'A job',
      requestParams: { path: z.object({ ...account, jobId: text }), query: z.object(includeInJobs) },
      responses: answersWith(jobSchema, 'The job.', [404]),
    },
  },
};
