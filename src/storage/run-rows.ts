import type { Selectable } from 'kysely';
import type { StateTables } from './state-tables.js';

/** All rows of a run that no record log contains, as stored in the database: times, names, ids, ends. */
export interface RunRows {
  readonly executions: Selectable<StateTables['executions']>;
  readonly projects: readonly Selectable<StateTables['projects']>[];
  readonly environments: readonly Selectable<StateTables['environments']>[];
  readonly jobs: readonly Selectable<StateTables['jobs']>[];
  readonly execution_steps: readonly Selectable<StateTables['execution_steps']>[];
  readonly step_traces: readonly Selectable<StateTables['step_traces']>[];
  readonly invocations: readonly Selectable<StateTables['invocations']>[];
  readonly step_outputs: readonly Selectable<StateTables['step_outputs']>[];
  readonly step_artifacts: readonly Selectable<StateTables['step_artifacts']>[];
  readonly job_runs: readonly Selectable<StateTables['job_runs']>[];
}
