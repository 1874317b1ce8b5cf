import type { Selectable } from 'kysely';
import type { CommandEnding } from './command-ending.js';
import type { ExecutionRow, StepRow } from './execution-store.js';
import type { StateTables } from './state-tables.js';

/** What is read of a run's row. */
export type RunColumns = Pick<
  StateTables['executions'],
  | 'run_key'
  | 'job'
  | 'environment'
  | 'project'
  | 'reason'
  | 'state'
  | 'step_count'
  | 'account_id'
  | 'job_id'
  | 'project_id'
  | 'environment_id'
> & {
  readonly execution_id: number;
  readonly run_started_unix_ms: number;
  readonly run_ended_unix_ms: number | null;
  readonly failed_step_count: number;
};

/** The columns of a step's row, with its run's. */
export type StepColumns = Selectable<StateTables['execution_steps']> & RunColumns & { readonly trace_count: number };

export function toRun(row: RunColumns): ExecutionRow {
  return {
    runId: row.execution_id,
    runKey: row.run_key,
    job: row.job,
    environment: row.environment,
    project: row.project,
    reason: row.reason,
    state: row.state,
    startedUnixMs: row.run_started_unix_ms,
    endedUnixMs: row.run_ended_unix_ms,
    stepCount: row.step_count,
    failedStepCount: row.failed_step_count,
  };
}

export function toStep(row: StepColumns): StepRow {
  return {
    stepId: row.step_id,
    stepIndex: row.step_index,
    run: toRun(row),
    // Only `begin` writes the column, from a list of texts.
    command: JSON.parse(row.command) as readonly string[],
    startedUnixMs: row.started_unix_ms,
    endedUnixMs: row.ended_unix_ms,
    ending: toEnding(row),
    traceCount: row.trace_count,
    // Unregistered steps are read only by their own store.
    reporter: row.reporter === 'remote' ? 'remote' : 'local',
  };
}

/** The columns with the end of a step. */
type EndingColumns = Pick<StateTables['execution_steps'], 'ending' | 'exit_code' | 'ending_detail'>;

export function fromEnding(ending: CommandEnding): EndingColumns {
  switch (ending.kind) {
    case 'exited':
      return { ending: ending.kind, exit_code: ending.exitCode | 0, ending_detail: ending.stoppedBy ?? null };
    case 'killed':
      return { ending: ending.kind, exit_code: null, ending_detail: ending.signal };
    case 'notStarted':
      return { ending: ending.kind, exit_code: null, ending_detail: ending.reason };
    case 'within':
    case 'unknown':
      return { ending: ending.kind, exit_code: null, ending_detail: null };
  }
}

/** How a step's command ended, from its row; `null` while it is running. */
export function toEnding({ ending, exit_code, ending_detail }: EndingColumns): CommandEnding | null {
  switch (ending) {
    case null:
      return null;
    case 'exited':
      return {
        kind: ending,
        exitCode: exit_code ?? 0,
        ...(ending_detail === null ? {} : { stoppedBy: ending_detail }),
      };
    case 'killed':
      return { kind: ending, signal: ending_detail ?? 'a signal' };
    case 'notStarted':
      return { kind: ending, reason: ending_detail ?? '' };
    case 'within':
    case 'unknown':
      return { kind: ending };
  }
}
