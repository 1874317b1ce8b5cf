import { DEBUG, INFO, type Severity, TRACE } from '../record/severity.js';

/** Severities that the engine writes for spans, read off its JSONL; what is not listed is INFO. */
const BY_TYPE: ReadonlyMap<string, Severity> = new Map([
  ['query.QueryExecuted', DEBUG],
  ['asset.AssetParsed', DEBUG],
  ['generic.GenericOpItemProcessed', DEBUG],
  ['query.ConnectionLimitWait', DEBUG],
  ['process.ThreadPoolWait', DEBUG],
  ['dev.CallTrace', TRACE],
  ['dev.Unknown', TRACE],
]);

/** The operations that are DEBUG; the others are INFO. */
const DEBUG_OPERATION = 'hydrate_relation_cache';

/** Whether a span's attribute is this text. The one question that the rules ask, so that whoever decodes can answer it. */
export type IsText = (name: string, text: string) => boolean;

/**
 * The severity of a span, which OTLP does not carry.
 * @param shortType event type without the public prefix
 * @param isText its attributes; the phase decides for evaluated nodes: INFO in RUN, else DEBUG; what is done, for generic operations
 */
export function spanSeverity(shortType: string, isText: IsText): Severity {
  switch (shortType) {
    case 'node.NodeEvaluated':
      return isText('phase', 'EXECUTION_PHASE_RUN') ? INFO : DEBUG;
    case 'generic.GenericOpExecuted':
      return isText('operation_id', DEBUG_OPERATION) ? DEBUG : INFO;
    default:
      return BY_TYPE.get(shortType) ?? INFO;
  }
}
