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

/**
 * The severity of a span, which OTLP does not carry.
 * @param shortType event type without the public prefix
 * @param parts its attributes; the phase decides for evaluated nodes: INFO in RUN, else DEBUG
 */
export function spanSeverity(shortType: string, parts: readonly AttributePart[]): Severity {
  if (shortType !== 'node.NodeEvaluated') return BY_TYPE.get(shortType) ?? INFO;
  return parts.some(({ name, json }) => name === 'phase' && json === RUN) ? INFO : DEBUG;
}
