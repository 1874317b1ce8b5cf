import type { Router } from 'express';
import { openApiRouter } from '../api/openapi/openapi-router.js';
import type { OwnApiDeps } from '../api/own/own-api-deps.js';
import { ownRouter } from '../api/own/own-router.js';
import { accountRouter } from '../api/v2/account-router.js';
import { jobRouter } from '../api/v2/job-router.js';
import { jobRunRouter } from '../api/v2/job-run-router.js';
import { runRouter } from '../api/v2/run-router.js';
import { StepLogReader } from '../api/v2/step-log-reader.js';
import { packageFile } from '../component/package-file.js';
import type { Feature } from '../feature.js';
import type { JobDefinition } from '../job/job-definition.js';
import { joinCommandLine } from '../job/split-command-line.js';
import { QueryEngine } from '../query/query-engine.js';
import { FIRST_ACCOUNT_ID } from '../store/account-store.js';
import type { StepOutput } from '../store/job-run-store.js';
import type { CatalogJob, CatalogStep } from '../store/run-catalog.js';
import type { State } from '../store/state.js';
import type { JobsLate } from './jobs-late.js';

/** What the API's routers are made of. */
export interface ApiRoutersDeps
  extends Pick<
    OwnApiDeps,
    'dataFolder' | 'notes' | 'reader' | 'tracker' | 'redaction' | 'clock' | 'stopping' | 'queryFiles'
  > {
  readonly state: State;
  /** The jobs that the configuration declares. */
  readonly jobs: readonly JobDefinition[];
  /** What runs them. */
  readonly jobsLate: Pick<JobsLate, 'open' | 'outputOf'>;
  /** What adds routers of its own. */
  readonly features: readonly Pick<Feature, 'api' | 'apiPaths'>[];
  /** The program's version. */
  readonly version: string;
}

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters({
  state,
  jobs,
  jobsLate,
  features,
  version,
  ...own
}: ApiRoutersDeps): Promise<readonly Router[]> {
  const { reader, redaction, clock, stopping } = own;
  const facts = new Map(
    jobs.map((job) => [
      job.name,
      { commandLines: job.commands.map(joinCommandLine), threads: job.threads, targetName: job.targetName },
    ]),
  );
  const logs = new StepLogReader(reader);
  const deps = {
    catalog: state.catalog,
    accounts: state.accounts,
    // The configuration is that of the first account: another's job of the same name is not the one that it declares.
    factsOf: ({ name, accountId }: Pick<CatalogJob, 'name' | 'accountId'>) =>
      accountId === FIRST_ACCOUNT_ID ? facts.get(name) : undefined,
    logsOf: async (step: CatalogStep) => {
      const [read, output] = await Promise.all([logs.read(step), jobsLate.outputOf(step.stepId)]);
      return output === undefined ? read : { ...read, logs: textOf(output) };
    },
    redaction,
    clock,
  };
  const queries = new QueryEngine({ entry: packageFile('dist/query-process.js'), clock, stopping });
  const added = await Promise.all(features.map(({ api }) => api?.() ?? []));
  const paths = await Promise.all(features.map(({ apiPaths }) => apiPaths?.() ?? {}));
  return [
    openApiRouter(version, paths),
    accountRouter(deps),
    runRouter(deps),
    jobRouter(deps),
    jobRunRouter({ ...deps, openDesk: async () => (await jobsLate.open()).desk }),
    ...added.flat(),
    ownRouter({ ...own, catalog: state.catalog, traces: state.traces, queries }),
  ];
}

function textOf({ text, droppedBytes }: StepOutput): string {
  return droppedBytes === 0 ? text : `… (the first ${droppedBytes} bytes are left out)\n${text}`;
}
