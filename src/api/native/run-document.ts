import { z } from 'zod';
import { invocationIdOf } from '../../record/telemetry-record.js';
import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { SetAsideRun } from '../../run/invocation-notes.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { RUN_STATUS, STATUS_NAMES } from '../../storage/state-tables.js';
import type { FoundRun } from './run-finder.js';

const statusSchema = z.literal(Object.values(STATUS_NAMES));
const timeSchema = z.iso.datetime().nullable();
const namedSchema = z.object({ id: z.number().int(), name: z.string() });

/** A command of a step. */
const invocationSchema = z.object({
  trace_id: z.string(),
  invocation_id: z.string(),
  index: z.number().int().meta({ description: 'position in its trace, from 1' }),
  command: z.string().nullable(),
  verdict: z
    .enum(['success', 'error', 'canceled', 'lost'])
    .nullable()
    .meta({ description: 'null while it is running' }),
  has_parquet: z.boolean(),
});

/** Paths of missing artifacts that an answer has. */
const MAX_MISSING = 1_000;

/** Artifacts of a step that cannot all be downloaded. */
const artifactsSchema = z.object({
  state: z.enum(['uploading', 'incomplete']),
  expected_count: z.number().int(),
  missing_count: z.number().int().meta({ description: 'that never came; 0 while they are uploaded' }),
  missing: z
    .array(z.string())
    .max(MAX_MISSING)
    .meta({ description: `the first ${MAX_MISSING} of them` }),
  reason: z.string().nullable(),
});

/** A run, in the words of the native API. */
export const runSchema = z
  .object({
    id: z.number().int(),
    account_id: z.number().int(),
    run_key: z.string().nullable().meta({ description: "the user's name for it (--run-id)" }),
    job: namedSchema,
    environment: namedSchema,
    project: namedSchema,
    reason: z.string().nullable(),
    status: statusSchema,
    status_message: z.string().nullable(),
    is_complete: z.boolean(),
    created_at: z.iso.datetime(),
    started_at: timeSchema,
    finished_at: timeSchema,
    engine_version: z.string().nullable(),
    git_branch: z.string().nullable(),
    git_sha: z.string().nullable(),
    steps: z.array(
      z.object({
        id: z.number().int(),
        index: z.number().int(),
        command: z.string().meta({ description: 'as it was started, without secrets' }),
        status: statusSchema,
        status_message: z.string().nullable(),
        created_at: z.iso.datetime(),
        started_at: timeSchema,
        finished_at: timeSchema,
        artifacts: artifactsSchema.nullable().meta({ description: 'null where all that it left can be downloaded' }),
        commands: z.array(invocationSchema),
      }),
    ),
  })
  .meta({ id: 'BridgeRun' });

/** A run that the database can never keep. */
export const setAsideSchema = z.object({
  trace_id: z.string(),
  command: z.string().nullable(),
  first_seen_at: z.iso.datetime(),
  last_seen_at: z.iso.datetime(),
  reason: z.string(),
});

/** Returns a run as `GET /set-aside-runs` shows it. @param redactor what the caller is shown of texts */
export function setAsideDocument(run: SetAsideRun, redactor: Redactor): z.input<typeof setAsideSchema> {
  return {
    trace_id: run.traceId,
    command: run.command === null ? null : redactor.command(run.command),
    first_seen_at: time(run.firstSeenUnixMs),
    last_seen_at: time(run.lastSeenUnixMs),
    reason: run.reason,
  };
}

/** Returns a run and its steps as `GET /runs/{id}` shows them. @param redactor what the caller is shown of texts */
export function runDocument(
  { run, steps }: Pick<FoundRun, 'run' | 'steps'>,
  redactor: Redactor,
): z.input<typeof runSchema> {
  return {
    id: run.id,
    account_id: run.accountId,
    run_key: run.runKey,
    job: { ...run.job },
    environment: { ...run.environment },
    project: { ...run.project },
    reason: run.reason,
    status: STATUS_NAMES[run.status],
    status_message: run.statusMessage === null ? null : statusText(run.statusMessage, redactor),
    is_complete: run.status >= RUN_STATUS.success,
    created_at: time(run.createdUnixMs),
    started_at: run.startedUnixMs === null ? null : time(run.startedUnixMs),
    finished_at: run.finishedUnixMs === null ? null : time(run.finishedUnixMs),
    engine_version: run.engineVersion,
    git_branch: run.gitBranch,
    git_sha: run.gitSha,
    steps: steps.map((step) => stepDocument(step, redactor)),
  };
}

function stepDocument(step: CatalogStep, redactor: Redactor) {
  return {
    id: step.id,
    index: step.index,
    command: redactor.command(step.command.join(' ')),
    status: STATUS_NAMES[step.status],
    status_message: step.statusMessage === null ? null : statusText(step.statusMessage, redactor),
    created_at: time(step.createdUnixMs),
    started_at: step.startedUnixMs === null ? null : time(step.startedUnixMs),
    finished_at: step.finishedUnixMs === null ? null : time(step.finishedUnixMs),
    artifacts: step.artifacts && {
      state: step.artifacts.state,
      expected_count: step.artifacts.expectedCount,
      missing_count: step.artifacts.missing.length,
      missing: step.artifacts.missing.slice(0, MAX_MISSING),
      reason: step.artifacts.reason,
    },
    commands: step.invocations.map(({ traceId, index, command, verdict, isSaved }) => ({
      trace_id: traceId,
      invocation_id: invocationIdOf(traceId),
      index,
      command: command === null ? null : redactor.command(command),
      verdict,
      has_parquet: isSaved,
    })),
  };
}

function time(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
