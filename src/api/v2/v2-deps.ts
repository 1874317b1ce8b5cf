import type { Clock } from '../../core/clock.js';
import type { RedactionLevel } from '../../redaction/redaction-policy.js';
import type { AccountStore } from '../../storage/account-store.js';
import type { CatalogJob, CatalogStep, JobCatalog, RunCatalog } from '../../storage/run-catalog.js';
import type { JobFacts } from './job-document.js';
import type { StepLogs } from './step-document.js';

/** What the routers of the platform's API work with. */
export interface V2Deps {
  readonly catalog: RunCatalog & JobCatalog;
  readonly accounts: AccountStore;
  /** What the configuration says of an account's job; `undefined` where it does not declare it, or not for that account. */
  readonly factsOf: (job: Pick<CatalogJob, 'name' | 'accountId'>) => JobFacts | undefined;
  /** What a step wrote. */
  readonly logsOf: (step: CatalogStep) => Promise<StepLogs>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
}
