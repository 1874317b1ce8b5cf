import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { envelopeSchema, errorAnswers, jsonAnswer } from '../openapi/answers.js';

const integer = z.number().int();
const time = z.string().meta({ description: 'like 2021-12-07 10:32:24.326116+00:00' });
const text = z.string();
const flag = z.boolean();
const status = z.literal([1, 2, 3, 10, 20, 30]).meta({
  description: '1 queued, 2 starting, 3 running, 10 success, 20 error, 30 cancelled',
});

const accountSchema = z.looseObject({ id: integer, name: text }).meta({ id: 'Account' });

const stepSchema = z
  .object({
    id: integer,
    run_id: integer,
    account_id: integer,
    index: integer,
    status,
    name: text.meta({ description: 'Invoke dbt with `…`' }),
    logs: text,
    debug_logs: text,
    created_at: time,
    updated_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
    status_color: text,
    status_humanized: text,
    status_message: text.nullable(),
    duration: text,
    duration_humanized: text,
    run_step_command: text,
  })
  .meta({ id: 'RunStep' });

const jobSchema = z
  .looseObject({
    id: integer,
    account_id: integer,
    project_id: integer,
    environment_id: integer,
    name: text,
    execute_steps: z.array(text),
    state: integer,
    created_at: time,
    updated_at: time,
    settings: z.object({ threads: integer, target_name: text }),
    schedule: z.looseObject({}),
    triggers: z.looseObject({}),
  })
  .meta({ id: 'Job' });

/** A run as the platform's API shows it. */
export const runSchema = z
  .object({
    id: integer,
    trigger_id: integer,
    account_id: integer,
    environment_id: integer,
    project_id: integer,
    job_definition_id: integer,
    job_id: integer,
    status,
    dbt_version: text,
    git_branch: text.nullable(),
    git_sha: text.nullable(),
    status_message: text.nullable(),
    status_humanized: text,
    href: text,
    created_at: time,
    updated_at: time,
    dequeued_at: time.nullable(),
    started_at: time.nullable(),
    finished_at: time.nullable(),
    created_at_humanized: text,
    finished_at_humanized: text,
    duration: text.meta({ example: '00:01:50' }),
    queued_duration: text,
    run_duration: text,
    duration_humanized: text.meta({ example: '1 minute, 50 seconds' }),
    queued_duration_humanized: text,
    run_duration_humanized: text,
    artifacts_saved: flag,
    has_docs_generated: flag,
    has_sources_generated: flag,
    notifications_sent: flag,
    in_progress: flag,
    is_complete: flag,
    is_success: flag,
    is_error: flag,
    is_cancelled: flag,
    is_running: flag,
    can_retry: flag,
    trigger: z.looseObject({ id: integer, cause: text }).nullable(),
    job: jobSchema.nullable(),
    environment: z.looseObject({ id: integer, name: text }).nullable(),
    run_steps: z.array(stepSchema),
  })
  .meta({ id: 'Run' });

const extraSchema = z.object({
  filters: z.looseObject({ limit: integer, offset: integer }),
  order_by: text.nullable(),
  pagination: z.object({ count: integer, total_count: integer }),
});
const listParameters = { limit: text.optional(), offset: text.optional(), order_by: text.optional() };
const account = { accountId: text };
const include = {
  include_related: text.optional().meta({ description: 'a,b or ["a","b"]: trigger, job, environment, run_steps …' }),
};
const ACCOUNT = '/api/v2/accounts/{accountId}';
const of = (...tags: readonly string[]) => tags.map((tag) => `v2: ${tag}`);

/** What the routers of the hosted platform's API answer. */
export const V2_PATHS: ZodOpenApiPathsObject = {
  '/api/v2/accounts': {
    get: {
      tags: of('accounts'),
      summary: "The token's account",
      responses: { 200: jsonAnswer(envelopeSchema(z.array(accountSchema)), 'One account.'), ...errorAnswers() },
    },
  },
  [ACCOUNT]: {
    get: {
      tags: of('accounts'),
      summary: 'An account',
      requestParams: { path: z.object(account) },
      responses: { 200: jsonAnswer(envelopeSchema(accountSchema), 'The account.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/runs`]: {
    get: {
      tags: of('runs'),
      summary: 'Runs, filtered and sorted',
      requestParams: {
        path: z.object(account),
        query: z.object({
          ...listParameters,
          ...include,
          status: text.optional(),
          status__in: text.optional(),
          job_definition_id: text.optional(),
          environment_id: text.optional(),
          project_id: text.optional(),
          project_id__in: text.optional(),
          id__gt: text.optional(),
          created_at__range: text.optional(),
          finished_at__range: text.optional(),
        }),
      },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(runSchema), extraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
  },
  [`${ACCOUNT}/runs/{runId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A run',
      requestParams: { path: z.object({ ...account, runId: text }), query: z.object(include) },
      responses: { 200: jsonAnswer(envelopeSchema(runSchema), 'The run.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/steps/{stepId}`]: {
    get: {
      tags: of('runs'),
      summary: 'A step of a run',
      requestParams: { path: z.object({ ...account, stepId: text }), query: z.object(include) },
      responses: { 200: jsonAnswer(envelopeSchema(stepSchema), 'The step.'), ...errorAnswers(404) },
    },
  },
  [`${ACCOUNT}/jobs`]: {
    get: {
      tags: of('jobs'),
      summary: 'Jobs, filtered and sorted',
      requestParams: {
        path: z.object(account),
        query: z.object({
          ...listParameters,
          project_id: text.optional(),
          project_id__in: text.optional(),
          environment_id: text.optional(),
          name__icontains: text.optional(),
          state: text.optional(),
        }),
      },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(jobSchema), extraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
  },
  [`${ACCOUNT}/jobs/{jobId}`]: {
    get: {
      tags: of('jobs'),
      summary: 'A job',
      requestParams: { path: z.object({ ...account, jobId: text }) },
      responses: { 200: jsonAnswer(envelopeSchema(jobSchema), 'The job.'), ...errorAnswers(404) },
    },
  },
};
