import { z } from 'zod';
import { platformStatusWord, RUN_STATUS } from '../storage/state-tables.js';

/**
 * A run as the hosted platform tells it. Ids are texts of digits: they may be larger than a number holds. What the
 * platform leaves out is `null`.
 */
export interface PlatformRun {
  readonly runId: string;
  readonly jobId: string | null;
  readonly jobName: string | null;
  readonly environmentId: string | null;
  readonly environmentName: string | null;
  readonly projectId: string | null;
  /** For example `Success`, `Error` or `Running`. */
  readonly status: string;
  readonly statusMessage: string | null;
  readonly isComplete: boolean;
  /** Whether the platform has saved the run's files; `null` where it does not say. */
  readonly hasArtifacts: boolean | null;
  readonly gitSha: string | null;
  readonly gitBranch: string | null;
  /** The run's page. */
  readonly href: string | null;
  /** What started it, for people. */
  readonly cause: string | null;
  readonly createdUnixMs: number | null;
  readonly startedUnixMs: number | null;
  readonly finishedUnixMs: number | null;
  /** In the order of their index; empty where they were not asked for. */
  readonly steps: readonly PlatformStep[];
}

/** A step of a run: a command of the engine, or something that the platform does itself. */
export interface PlatformStep {
  /** From 1. */
  readonly index: number;
  readonly stepId: string | null;
  /** For example ``Invoke dbt with `dbt build` ``. */
  readonly name: string;
  /** The command in the name; `null` where the platform does the step itself. */
  readonly command: string | null;
  readonly outcome: StepOutcome;
  readonly startedUnixMs: number | null;
  readonly finishedUnixMs: number | null;
}

/** How a step ended; `unfinished` where it was not begun or goes on. */
export type StepOutcome = 'success' | 'error' | 'canceled' | 'unfinished';

/** One page of a list. */
export interface PlatformPage {
  readonly runs: readonly PlatformRun[];
  /** How many there are altogether; `null` where the platform does not say. */
  readonly totalCount: number | null;
}

const idSchema = z.union([z.int().transform(String), z.string().regex(/^\d{1,20}$/)]);
const optionalId = idSchema.nullish().catch(null);
const optionalText = z
  .string()
  .nullish()
  .catch(null)
  .transform((text) => (text == null || text.trim() === '' ? null : text));
/** `2021-12-07 10:32:24.326116+00:00`, or ISO 8601. */
const optionalTime = optionalText.transform((text) => {
  const unixMs = text === null ? Number.NaN : Date.parse(text.replace(' ', 'T'));
  return Number.isNaN(unixMs) ? null : unixMs;
});
const named = z.object({ name: optionalText }).nullish().catch(null);

const STEP_OUTCOMES: Readonly<Record<number, StepOutcome>> = { 10: 'success', 20: 'error', 30: 'canceled' };

const stepSchema = z
  .object({
    id: optionalId,
    index: z.int().positive(),
    name: z.string().nullish(),
    status: z.int().nullish(),
    started_at: optionalTime,
    finished_at: optionalTime,
  })
  .transform(
    (step): PlatformStep => ({
      index: step.index,
      stepId: step.id ?? null,
      name: step.name ?? '',
      command: /`([^`]*)`/.exec(step.name ?? '')?.[1]?.trim() || null,
      outcome: STEP_OUTCOMES[step.status ?? 0] ?? 'unfinished',
      startedUnixMs: step.started_at,
      finishedUnixMs: step.finished_at,
    }),
  );

const runSchema = z
  .object({
    id: idSchema,
    job_definition_id: optionalId,
    job_id: optionalId,
    environment_id: optionalId,
    project_id: optionalId,
    status: z.int(),
    status_humanized: optionalText,
    status_message: optionalText,
    is_complete: z.boolean().nullish(),
    artifacts_saved: z.boolean().nullish(),
    git_sha: optionalText,
    git_branch: optionalText,
    href: optionalText,
    created_at: optionalTime,
    started_at: optionalTime,
    finished_at: optionalTime,
    job: named,
    environment: named,
    trigger: z.object({ cause: optionalText }).nullish().catch(null),
    run_steps: z.array(stepSchema).nullish(),
  })
  .transform(
    (run): PlatformRun => ({
      runId: run.id,
      jobId: run.job_definition_id ?? run.job_id ?? null,
      jobName: run.job?.name ?? null,
      environmentId: run.environment_id ?? null,
      environmentName: run.environment?.name ?? null,
      projectId: run.project_id ?? null,
      status: run.status_humanized ?? statusWordOf(run.status),
      statusMessage: run.status_message,
      isComplete: run.status >= 10 || run.is_complete === true,
      hasArtifacts: run.artifacts_saved ?? null,
      gitSha: run.git_sha,
      gitBranch: run.git_branch,
      href: run.href,
      cause: run.trigger?.cause ?? null,
      createdUnixMs: run.created_at,
      startedUnixMs: run.started_at,
      finishedUnixMs: run.finished_at,
      steps: (run.run_steps ?? []).toSorted((a, b) => a.index - b.index),
    }),
  );

const pageSchema = z
  .object({
    data: z.array(runSchema),
    extra: z
      .object({ pagination: z.object({ total_count: z.int().nullish().catch(null) }).nullish() })
      .nullish()
      .catch(null),
  })
  .transform(({ data, extra }): PlatformPage => ({ runs: data, totalCount: extra?.pagination?.total_count ?? null }));

const statusSchema = z.object({
  status: z.object({
    code: z.int().nullish().catch(null),
    is_success: z.boolean().nullish().catch(null),
    user_message: optionalText,
  }),
});

/** Reads the `data` of an answer that is a run. @throws z.ZodError for anything else. */
export function parseRunAnswer(value: unknown): PlatformRun {
  return z.object({ data: runSchema }).parse(value).data;
}

/** Reads an answer that is a list of runs. @throws z.ZodError for anything else. */
export function parsePageAnswer(value: unknown): PlatformPage {
  return pageSchema.parse(value);
}

/** Whether an answer's `data` is `null`, which stands for an empty list. @throws z.ZodError where there is no `data`. */
export function isNullAnswer(value: unknown): boolean {
  return z.object({ data: z.union([z.null(), z.array(z.unknown())]) }).parse(value).data === null;
}

/** What the envelope says of the request; `undefined` where there is no envelope. */
export function parseEnvelope(
  value: unknown,
): { readonly code: number | null; readonly isSuccess: boolean; readonly message: string | null } | undefined {
  const { data } = statusSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { code = null, is_success, user_message } = data.status;
  return { code, isSuccess: is_success ?? (code ?? 200) < 400, message: user_message };
}

/** A status that this version does not know stays a number. */
function statusWordOf(status: number): string {
  const known = Object.values(RUN_STATUS).find((one) => one === status);
  return known === undefined ? String(status) : platformStatusWord(known);
}
