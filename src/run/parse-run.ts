import { z } from 'zod';
import { camelCased } from '../core/snake-case.js';
import { parseSpanId, parseTraceId, parseUnixNano, type SpanId } from '../record/telemetry-record.js';
import { endingSchema } from './ending-schema.js';
import type { InvocationStep, InvocationSummary, RunSummary } from './verdict.js';

const nanoSchema = z.string().transform((text, context) => {
  const value = parseUnixNano(text);
  if (value !== undefined) return value;
  context.addIssue({ code: 'custom', message: 'not a time in nanoseconds' });
  return z.NEVER;
});
const traceIdSchema = z.string().transform((text, context) => {
  const id = parseTraceId(text);
  if (id !== undefined) return id;
  context.addIssue({ code: 'custom', message: 'not a trace id' });
  return z.NEVER;
});
const spanIdSchema = z
  .string()
  .nullable()
  .transform((text): SpanId | null => (text === null ? null : (parseSpanId(text) ?? null)));
const countSchema = z.number().int().nonnegative();
const scalarSchema = z.union([z.string(), z.number(), z.boolean()]);
const resourceSchema = z.object({
  attributes: z.record(z.string(), z.union([scalarSchema, z.array(scalarSchema)])),
  scope: z.object({ name: z.string(), version: z.string() }),
});
const verdictSchema = z.enum(['success', 'error', 'canceled', 'lost']);

/** The step of an invocation; each repeats the names of the job. */
const stepPositionSchema = z.object({
  id: z.string(),
  index: countSchema,
  run_id: countSchema,
  run_key: z.string().nullable(),
  job: z.string(),
  environment: z.string().nullable(),
  project: z.string().nullable(),
  reason: z.string().nullable(),
  ending: endingSchema.nullable(),
});

const stepSchema = z.object({
  index: countSchema,
  span_id: spanIdSchema,
  process_span_id: spanIdSchema,
  outer_parent_span_id: spanIdSchema,
  has_invocation_end: z.boolean(),
  has_process_end: z.boolean(),
  is_ambiguous: z.boolean(),
  command: z.string().nullable(),
  raw_command: z.string().nullable(),
  resource: resourceSchema,
  start_time_unix_nano: nanoSchema,
  end_time_unix_nano: nanoSchema,
  verdict: verdictSchema.nullable(),
  status_message: z.string().nullable(),
  total_errors: z.number().nullable(),
  total_warnings: z.number().nullable(),
  node_counts: z
    .object({
      success: countSchema,
      warned: countSchema,
      failed: countSchema,
      error: countSchema,
      canceled: countSchema,
      skipped: countSchema,
      unfinished: countSchema,
    })
    .catchall(countSchema),
  record_count: countSchema,
  parquet_file: z.string(),
  step: stepPositionSchema.nullable(),
});

const runSchema = z.object({
  trace_id: traceIdSchema,
  state: z.enum(['open', 'finished']),
  first_seen_unix_ms: z.number(),
  last_seen_unix_ms: z.number(),
  log_bytes: countSchema,
  steps: z.array(stepSchema),
});

/** An invocation in a run's document, as it is written. */
export type StepDocument = z.input<typeof stepSchema>;

/** An invocation's step in it, likewise. */
export type StepPositionDocument = z.input<typeof stepPositionSchema>;

/** Reads what `formatRun` wrote; `undefined` for anything else, which is then rebuilt from the record log. */
export function parseRun(text: string): RunSummary | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { data } = runSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { steps, ...run } = data;
  return { ...camelCased(run), invocations: steps.map(invocationOf) };
}

function invocationOf({ step, ...invocation }: z.output<typeof stepSchema>): InvocationSummary {
  return { ...camelCased(invocation), step: step && positionOf(step) };
}

function positionOf({ id, index, ...step }: z.output<typeof stepPositionSchema>): InvocationStep {
  return { ...camelCased(step), stepId: id, stepIndex: index };
}
