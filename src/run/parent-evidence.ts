import type { TelemetryRecord } from '../record/telemetry-record.js';
import { eventName } from './event-name.js';

/** How surely the parent of a NodeProcessed span is the invocation span. */
export const CERTAIN = 3;
/** How surely a span whose own record is missing is an invocation span; from this value on it counts as one. */
export const LIKELY = 2;
const POSSIBLE = 1;

/**
 * What a record says about the span it refers to (its parent, or a log record's span): a missing invocation span is identified
 * by its children. In all of the engine's runs NodeProcessed, ArtifactWritten and the phases are
 * its direct children, except the hook phases, which at trace level are children of a CallTrace.
 */
export function parentEvidence(record: TelemetryRecord): number {
  const name = eventName(record.eventType);
  if (record.recordType === 'LogRecord') {
    if (record.spanName !== null && isInvocationName(record.spanName)) return CERTAIN;
    if (name === 'Groups') return POSSIBLE;
    // The first message of a command names the engine (`dbt-core`, `dbt-fusion`) and its version, on the invocation span.
    return name === 'ProgressMessage' && record.attributes.text('action')?.startsWith('dbt-') ? LIKELY : 0;
  }
  switch (name) {
    case 'NodeProcessed':
      return CERTAIN;
    case 'ArtifactWritten':
      return LIKELY;
    case 'PhaseExecuted':
      return /ON_?RUN_?(START|END)/i.test(record.attributes.text('phase') ?? '') ? POSSIBLE : LIKELY;
    case 'HookProcessed':
      return POSSIBLE;
    default:
      return 0;
  }
}

/** Whether a span's name is that of an invocation: `dbt invocation (…)`. */
export function isInvocationName(spanName: string): boolean {
  return INVOCATION_NAME.test(spanName);
}

const INVOCATION_NAME = /^\S+ invocation \(/;
