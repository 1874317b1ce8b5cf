import type { Router } from 'express';
import { openApiRouter } from '../api/openapi/openapi-router.js';
import type { OwnApiDeps } from '../api/own/own-api-deps.js';
import { ownRouter } from '../api/own/own-router.js';
import { accountRouter } from '../api/v2/account-router.js';
import { jobRouter } from '../api/v2/job-router.js';
import { runRouter } from '../api/v2/run-router.js';
import { StepLogReader } from '../api/v2/step-log-reader.js';
import { packageFile } from '../component/package-file.js';
import type { JobDefinition } from '../job/job-definition.js';
import { joinCommandLine } from '../job/split-command-line.js';
import { QueryEngine } from '../query/query-engine.js';
import type { State } from '../store/state.js';

/** What the API's routers are made of. */
export interface ApiRoutersDeps extends Pick<OwnApiDeps, 'dataFolder' | 'reader' | 'tracker' | 'clock' | 'stopping'> {
  readonly state: State;
  /** The jobs that the configuration declares. */
  readonly jobs: readonly JobDefinition[];
  /** The program's version. */
  readonly version: string;
}

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters({ state, jobs, version, ...own }: ApiRoutersDeps): Promise<readonly Router[]> {
  const { reader, clock, stopping } = own;
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
    factsOf: ({ name }: { readonly name: string }) => facts.get(name),
    logsOf: logs.read.bind(logs),
    clock,
  };
  const queries = new QueryEngine({ entry: packageFile('dist/query-process.js'), clock, stopping });
  return [
    openApiRouter(version),
    accountRouter(deps),
    runRouter(deps),
    jobRouter(deps),
    ownRouter({ ...own, catalog: state.catalog, traces: state.traces, queries }),
  ];
}
