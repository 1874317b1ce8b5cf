import { z } from 'zod';
import { camelCased, snakeCased } from '../core/snake-case.js';
import { parseArtifactPath } from '../storage/artifacts.js';
import type { FinishResult } from '../storage/execution-store.js';
import type { ExecutionRow } from '../storage/executions.js';
import { DEFAULT_JOB, type StepPosition, type StepStart } from '../storage/steps.js';
import { endingSchema } from './ending-schema.js';

// What goes between a registry over HTTP and the bridge that keeps it. Both sides are here, so that they cannot drift apart.

/** The most bytes that a body of it may have: a command line is the longest thing in it. */
export const MAX_API_BODY_BYTES = 256 * 1024;

/** The most bytes of a list of artifacts: 20,000 paths of the longest kind. */
export const MAX_ARTIFACT_LIST_BYTES = 17 * 1024 * 1024;

const nameSchema = z.string().trim().min(1).max(200);
const unixMsSchema = z.number().nonnegative().max(8.64e15).transform(Math.floor);

/** A step's id, chosen by the program that runs the command. */
export const stepIdSchema = z.string().regex(/^[\w.:-]{1,100}$/, 'must be 1 to 100 letters, digits or _ . : -');

/** A step's beginning; its id stands in the path. */
export const stepStartSchema = z
  .object({
    run_key: nameSchema.nullable().default(null),
    job: nameSchema.default(DEFAULT_JOB),
    environment: nameSchema.nullable().default(null),
    project: nameSchema.nullable().default(null),
    reason: z.string().max(2_000).nullable().default(null),
    command: z.array(z.string()).min(1),
    started_unix_ms: unixMsSchema,
    is_last: z.boolean().default(false),
    run_of: stepIdSchema.nullable().default(null),
  })
  .strict();

/** A step's beginning as it is written. */
export type StepStartDocument = z.input<typeof stepStartSchema>;

export const stepEndSchema = z.object({ ending: endingSchema, ended_unix_ms: unixMsSchema }).strict();

/** Artifacts that are about to be uploaded for a step. */
export const expectedArtifactsSchema = z
  .object({
    paths: z
      .array(z.string().refine((path) => parseArtifactPath(path) !== undefined, 'must be a path of an artifact'))
      .max(20_000),
  })
  .strict();

/** No more artifacts are uploaded for a step; why not all of them were, `null` where all were. */
export const artifactsEndSchema = z.object({ reason: z.string().max(2_000).nullable() }).strict();

export const finishSchema = z.object({ run_key: nameSchema }).strict();

/** Whether the step is to be interrupted. */
export const cancellationSchema = z.object({ cancelled: z.boolean() });

export const stepPositionSchema = z
  .object({
    run_id: z.number().int(),
    step_index: z.number().int(),
    job: z.string(),
    reason: z.string().nullable(),
    account_id: z.number().int(),
    job_id: z.number().int(),
    project_id: z.number().int(),
    environment_id: z.number().int(),
  })
  .transform((position): StepPosition => camelCased(position));

const runSchema = z
  .object({
    run_id: z.number().int(),
    run_key: z.string().nullable(),
    job: z.string(),
    environment: z.string().nullable(),
    project: z.string().nullable(),
    reason: z.string().nullable(),
    state: z.enum(['open', 'closing', 'finished']),
    started_unix_ms: z.number(),
    ended_unix_ms: z.number().nullable(),
    step_count: z.number().int(),
    failed_step_count: z.number().int(),
  })
  .transform((run): ExecutionRow => camelCased(run));

/** The outcome of finishing a run; an unknown run is a 404 instead. */
export const finishResultSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('finished'), run: runSchema }),
  z.object({ kind: z.literal('closing'), run: runSchema, running_count: z.number().int() }),
  z.object({ kind: z.literal('already_finished'), run: runSchema }),
]);

/** What is wrong with a request, in a line for people. */
export const apiErrorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

export function stepStartOf(stepId: string, body: z.output<typeof stepStartSchema>): StepStart {
  const { runOf, ...start } = camelCased(body);
  return { stepId, ...start, ...(runOf !== null && { runOf }) };
}

export function finishDocument(
  result: Exclude<FinishResult, { kind: 'unknownRun' }>,
): z.input<typeof finishResultSchema> {
  const run = snakeCased(result.run);
  switch (result.kind) {
    case 'finished':
      return { kind: 'finished', run };
    case 'closing':
      return { kind: 'closing', run, running_count: result.runningCount };
    case 'alreadyFinished':
      return { kind: 'already_finished', run };
  }
}

export function finishResultOf(document: z.output<typeof finishResultSchema>): FinishResult {
  switch (document.kind) {
    case 'finished':
      return document;
    case 'closing':
      return { kind: 'closing', run: document.run, runningCount: document.running_count };
    case 'already_finished':
      return { kind: 'alreadyFinished', run: document.run };
  }
}
