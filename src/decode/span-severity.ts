import { DEBUG, INFO, type Severity, TRACE } from '../record/severity.js';
import type { AttributePart } from './attribute-json.js';

const RUN = '"EXECUTION_PHASE_RUN"';

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
const DEBUG_OPERATION = '"hydrate_relation_cache"';

/**
 * The severity of a span, which OTLP does not carry.
 * @param shortType event type without the public prefix
 * @param parts its attributes; the phase decides for evaluated nodes: INFO in RUN, else DEBUG; what is done, for generic operations
 */
export function spanSeverity(shortType: string, parts: readonly AttributePart[]): Severity {
  switch (shortType) {
    case 'node.NodeEvaluated':
      return has(parts, 'phase', RUN) ? INFO : DEBUG;
    case 'generic.GenericOpExecuted':
      return has(parts, 'operation_id', DEBUG_OPERATION) ? DEBUG : INFO;
    default:
      return BY_TYPE.get(shortType) ?? INFO;
  }
}

function has(parts: readonly AttributePart[], name: string, json: string): boolean {
  return parts.some((part) => part.name === name && part.json === json);
}
