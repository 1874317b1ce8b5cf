import type { Selectable } from 'kysely';
import { z } from 'zod';
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

const id = z.number().int().nonnegative();
const time = z.number();
const maybeTime = time.nullable();
const maybeText = z.string().nullable();
const flag = z.number().int();
const status = z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(10), z.literal(20), z.literal(30)]);
const named = { id, account_id: id, name: z.string(), created_unix_ms: time, updated_unix_ms: time };

const rowsSchema = z.object({
  executions: z.object({
    ...{ id, run_key: maybeText, job: z.string(), environment: maybeText, project: maybeText, reason: maybeText },
    ...{ state: z.enum(['open', 'closing', 'finished']), started_unix_ms: time, ended_unix_ms: maybeTime },
    ...{ step_count: id, account_id: id, project_id: id, environment_id: id, job_id: id },
    ...{ created_unix_ms: time, updated_unix_ms: time, seen_unix_ms: maybeTime, finished_unix_ms: time },
    ...{ cancelled_unix_ms: maybeTime, status, status_message: maybeText, engine_version: maybeText },
    ...{ git_branch: maybeText, git_sha: maybeText, artifacts_removed_unix_ms: maybeTime },
    ...{ rows_revision: id, kept_revision: id, notified: id },
  }),
  projects: z.array(z.object(named)),
  environments: z.array(z.object({ ...named, project_id: id })),
  jobs: z.array(z.object({ ...named, project_id: id, environment_id: id })),
  execution_steps: z.array(
    z.object({
      ...{ id, step_id: z.string(), execution_id: id, step_index: id, command: z.string() },
      ...{ reporter: z.enum(['local', 'remote', 'nobody']), is_last: flag, started_unix_ms: time },
      ...{
        ended_unix_ms: maybeTime,
        ending: z.enum(['exited', 'killed', 'notStarted', 'within', 'unknown']).nullable(),
      },
      ...{ exit_code: z.number().nullable(), ending_detail: maybeText, updated_unix_ms: time },
      ...{ seen_unix_ms: maybeTime, heard_unix_ms: maybeTime, status, status_message: maybeText },
    }),
  ),
  step_traces: z.array(z.object({ trace_id: z.string(), step_id: z.string() })),
  invocations: z.array(
    z.object({
      ...{ trace_id: z.string(), invocation_index: id, step_id: z.string(), command: maybeText },
      ...{ verdict: z.enum(['success', 'error', 'canceled', 'lost']).nullable(), status_message: maybeText },
      ...{ started_unix_ms: time, ended_unix_ms: time, is_saved: flag, parquet_file: z.string() },
    }),
  ),
  step_outputs: z.array(z.object({ step_id: z.string(), output: z.string(), dropped_bytes: id })),
  step_artifacts: z
    .array(
      z.object({
        ...{ step_id: z.string(), state: z.enum(['expected', 'missing']), expected_count: id, missing_count: id },
        ...{ paths: z.string(), reason: maybeText },
      }),
    )
    .default([]),
  job_runs: z.array(
    z.object({
      ...{ run_id: id, state: z.enum(['queued', 'running', 'ended']), first_command: id, commands_digest: z.string() },
      ...{ stopped_at: id.nullable(), failure: maybeText, pid: z.number().nullable(), process_id: maybeText },
      ...{ retried_run_id: id.nullable().default(null), steps_override: maybeText.default(null) },
    }),
  ),
});

/** Reads a run's rows as `RunRowBackup` writes them; `undefined` for anything else. Unknown fields are left out. */
export function parseRunRows(text: string): RunRows | undefined {
  try {
    return rowsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
