import type { Router } from 'express';
import { openApiRouter } from '../api/openapi/openapi-router.js';
import type { OwnApiDeps } from '../api/own/own-api-deps.js';
import { ownRouter } from '../api/own/own-router.js';
import { accountRouter } from '../api/v2/account-router.js';
import { jobRouter } from '../api/v2/job-router.js';
import { runRouter } from '../api/v2/run-router.js';
import { StepLogReader } from '../api/v2/step-log-reader.js';
import type { Feature } from '../feature.js';
import type { Jobs, StepOutput } from '../job/feature.js';
import type { CatalogStep } from '../storage/run-catalog.js';
import type { State } from '../storage/state.js';

/** What the API's routers are made of. */
export interface ApiRoutersDeps
  extends Pick<OwnApiDeps, 'notes' | 'reader' | 'tracker' | 'redaction' | 'clock' | 'stopping'> {
  readonly state: State;
  readonly jobs: Pick<Jobs, 'factsOf' | 'outputOf'>;
  /** What adds routers of its own. */
  readonly features: readonly Pick<Feature, 'api' | 'apiPaths'>[];
  /** The program's version. */
  readonly version: string;
}

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters({
  state,
  jobs,
  features,
  version,
  ...own
}: ApiRoutersDeps): Promise<readonly Router[]> {
  const { reader, redaction, clock } = own;
  const logs = new StepLogReader(reader);
  const deps = {
    catalog: state.catalog,
    accounts: state.accounts,
    factsOf: jobs.factsOf,
    logsOf: async (step: CatalogStep) => {
      const [read, output] = await Promise.all([logs.read(step), jobs.outputOf(step.stepId)]);
      return output === undefined ? read : { ...read, logs: textOf(output) };
    },
    redaction,
    clock,
  };
  const added = await Promise.all(features.map(({ api }) => api?.() ?? []));
  const paths = await Promise.all(features.map(({ apiPaths }) => apiPaths?.() ?? {}));
  return [
    openApiRouter(version, paths),
    accountRouter(deps),
    runRouter(deps),
    jobRouter(deps),
    ...added.flat(),
    ownRouter({ ...own, catalog: state.catalog, traces: state.traces }),
  ];
}

function textOf({ text, droppedBytes }: StepOutput): string {
  return droppedBytes === 0 ? text : `… (the first ${droppedBytes} bytes are left out)\n${text}`;
}
