import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import { engineOutcomeOf, UNKNOWN_OUTCOME } from './engine-outcome.js';
import type { NodePhase } from './node-phase.js';

/** Reads a NodeEvaluated span's start or end; without the queries, which are counted elsewhere. */
export function measuredPhase(record: SpanStart | SpanEnd, phase: string): NodePhase {
  const { attributes, startTimeUnixNano } = record;
  const start = { phase, startTimeUnixNano, warehouseTimeNano: 0n };
  if (record.recordType === 'SpanStart') {
    return { ...start, ...UNKNOWN_OUTCOME, endTimeUnixNano: null, lifetimeNano: null, idleTimeMs: null, rows: null };
  }
  return {
    ...start,
    ...engineOutcomeOf(attributes),
    endTimeUnixNano: record.endTimeUnixNano,
    lifetimeNano: record.endTimeUnixNano - startTimeUnixNano,
    idleTimeMs: attributes.integer('idle_time_ms') ?? null,
    rows: attributes.integer('rows_affected') ?? null,
  };
}
