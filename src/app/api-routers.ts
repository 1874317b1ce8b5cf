import type { Router } from 'express';
import { accountRouter } from '../api/v2/account-router.js';
import { jobRouter } from '../api/v2/job-router.js';
import { runRouter } from '../api/v2/run-router.js';
import { StepLogReader } from '../api/v2/step-log-reader.js';
import type { Clock } from '../component/clock.js';
import type { JobDefinition } from '../job/job-definition.js';
import { joinCommandLine } from '../job/split-command-line.js';
import type { RecordLogReader } from '../sink/record-log.js';
import type { State } from '../store/state.js';

/** What the API's routers are made of. */
export interface ApiRoutersDeps {
  readonly state: State;
  readonly reader: RecordLogReader;
  /** The jobs that the configuration declares. */
  readonly jobs: readonly JobDefinition[];
  readonly clock: Clock;
}

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters({ state, reader, jobs, clock }: ApiRoutersDeps): Promise<readonly Router[]> {
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
  return [accountRouter(deps), runRouter(deps), jobRouter(deps)];
}
