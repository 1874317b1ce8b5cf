import { parseSpanId, parseTraceId, type SpanId, type TraceId } from '../record/ids.js';
import type { Resource, ResourceValue } from '../record/resource.js';
import { parseUnixNano, type UnixNano } from '../record/unix-nano.js';
import type { InvocationSummary, NodeVerdict, RunSummary, Verdict } from './run-summary.js';

const STATES: readonly RunSummary['state'][] = ['open', 'finished'];
const VERDICTS: readonly Verdict[] = ['success', 'error', 'canceled', 'lost'];

/**
 * A run's summary of the JSON that `formatRun` writes. By hand, because every start of the program would otherwise load
 * a schema library (100 files, 40 ms, 12 MB) for this one document, which nobody but the program itself writes.
 * @throws TypeError for anything else, with the reason.
 */
export function runFromJson(value: unknown): RunSummary {
  const run = object(value);
  return {
    traceId: traceId(run.trace_id),
    firstSeenUnixMs: number(run.first_seen_unix_ms),
    lastSeenUnixMs: number(run.last_seen_unix_ms),
    state: oneOf(STATES, run.state),
    logBytes: count(run.log_bytes),
    invocations: list(run.steps).map(invocation),
  };
}

function invocation(value: unknown): InvocationSummary {
  const step = object(value);
  return {
    index: count(step.index),
    spanId: orNull(spanId, step.span_id),
    processSpanId: orNull(spanId, step.process_span_id),
    outerParentSpanId: orNull(spanId, step.outer_parent_span_id),
    hasInvocationEnd: boolean(step.has_invocation_end),
    hasProcessEnd: boolean(step.has_process_end),
    isAmbiguous: boolean(step.is_ambiguous),
    command: orNull(text, step.command),
    rawCommand: orNull(text, step.raw_command),
    resource: resource(step.resource),
    startTimeUnixNano: unixNano(step.start_time_unix_nano),
    endTimeUnixNano: unixNano(step.end_time_unix_nano),
    verdict: orNull((verdict) => oneOf(VERDICTS, verdict), step.verdict),
    statusMessage: orNull(text, step.status_message),
    totalErrors: orNull(number, step.total_errors),
    totalWarnings: orNull(number, step.total_warnings),
    nodeCounts: nodeCounts(step.node_counts),
    recordCount: count(step.record_count),
    parquetFile: text(step.parquet_file),
  };
}

function nodeCounts(value: unknown): Readonly<Record<NodeVerdict, number>> {
  const counts = object(value);
  return {
    success: count(counts.success),
    warned: count(counts.warned),
    failed: count(counts.failed),
    error: count(counts.error),
    canceled: count(counts.canceled),
    skipped: count(counts.skipped),
    unfinished: count(counts.unfinished),
  };
}

function resource(value: unknown): Resource {
  const { attributes, scope } = object(value);
  const { name, version } = object(scope);
  const entries = Object.entries(object(attributes)).map(([key, one]): [string, ResourceValue] => [
    key,
    Array.isArray(one) ? one.map(scalar) : scalar(one),
  ]);
  return { attributes: Object.fromEntries(entries), scope: { name: text(name), version: text(version) } };
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('not an object');
  return Object.fromEntries(Object.entries(value));
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('not a list');
  return value;
}

function orNull<T>(read: (value: unknown) => T, value: unknown): T | null {
  return value === null ? null : read(value);
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('not a text');
  return value;
}

function number(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError('not a number');
  return value;
}

function count(value: unknown): number {
  const found = number(value);
  if (!Number.isSafeInteger(found) || found < 0) throw new TypeError('not a count');
  return found;
}

function boolean(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new TypeError('not true or false');
  return value;
}

function scalar(value: unknown): string | number | boolean {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  throw new TypeError('not a scalar');
}

function oneOf<T extends string>(choices: readonly T[], value: unknown): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new TypeError(`not one of ${choices.join(', ')}`);
  return found;
}

function traceId(value: unknown): TraceId {
  const id = parseTraceId(text(value));
  if (id === undefined) throw new TypeError('not a trace id');
  return id;
}

/** An id that is none counts as unknown, as where a later version spells it in another way. */
function spanId(value: unknown): SpanId | null {
  return parseSpanId(text(value)) ?? null;
}

function unixNano(value: unknown): UnixNano {
  const found = parseUnixNano(text(value));
  if (found === undefined) throw new TypeError('not a time in nanoseconds');
  return found;
}
