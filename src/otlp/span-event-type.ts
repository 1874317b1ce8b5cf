import { EVENT_TYPE_PREFIX, EVENTS } from '../record/event-table.js';
import { invocationIdOf } from '../record/ids.js';
import { DEBUG, INFO, type Severity } from '../record/severity.js';
import type { LogRecord } from '../record/telemetry-record.js';

/** How a span's name begins where the beginning alone tells its full event type. */
export const NAME_BEGINNINGS = namesOfSpans().flatMap(([beginning, eventType]) =>
  typeof beginning === 'string' ? [{ beginning, eventType }] : [],
);

/** What other names fit. */
const NAME_PATTERNS = namesOfSpans().flatMap(([pattern, eventType]) =>
  typeof pattern === 'string' ? [] : [{ pattern, eventType }],
);

function namesOfSpans(): (readonly [string | RegExp, string])[] {
  return [...EVENTS].flatMap(([eventType, { span }]) => (span?.names ?? []).map((name) => [name, eventType] as const));
}

/** The spelling of a node's span in documentation; whether it was processed or evaluated, its attributes tell. */
const DOCUMENTED_NODE = /^Node\(/;
const ONLY_PROCESSED = new Set(['last_phase', 'duration_ms', 'in_selection', 'node_index', 'group', 'source_name']);

/** Messages that are spans, by the fields that they can have: how spans of another name are told. */
export type SpanShapes = readonly { readonly eventType: string; readonly fields: ReadonlySet<string> }[];

/** An attribute, as far as its name goes. */
interface Named {
  readonly key: string;
}

/** The event type of a span that nothing tells: the engine's own word for a span that it cannot name. */
const UNKNOWN = `${EVENT_TYPE_PREFIX}dev.Unknown`;

/**
 * Tells a span's event type, which OTLP does not carry, from its name and attribute set. A name that is not known is
 * matched by its attributes (asked for only then): the one message that has them all (the one with the fewest fields, if it is alone with that).
 */
export function spanEventType(name: string, attributesOf: () => readonly Named[], shapes: SpanShapes): string {
  for (const { beginning, eventType } of NAME_BEGINNINGS) if (name.startsWith(beginning)) return eventType;
  for (const { pattern, eventType } of NAME_PATTERNS) if (pattern.test(name)) return eventType;
  if (DOCUMENTED_NODE.test(name)) {
    const isProcessed = attributesOf().some(({ key }) => ONLY_PROCESSED.has(key));
    return EVENT_TYPE_PREFIX + (isProcessed ? 'node.NodeProcessed' : 'node.NodeEvaluated');
  }
  return byAttributes(attributesOf(), shapes) ?? UNKNOWN;
}

function byAttributes(attributes: readonly Named[], shapes: SpanShapes): string | undefined {
  if (attributes.length === 0) return undefined;
  const fitting = shapes.filter(({ fields }) => attributes.every(({ key }) => fields.has(key)));
  const fewest = Math.min(...fitting.map(({ fields }) => fields.size));
  const best = fitting.filter(({ fields }) => fields.size === fewest);
  return best.length === 1 ? best[0]?.eventType : undefined;
}

/** The event type without the public prefix, for example `node.NodeProcessed`; other types come back whole. */
export function shortEventType(eventType: string): string {
  return eventType.startsWith(EVENT_TYPE_PREFIX) ? eventType.slice(EVENT_TYPE_PREFIX.length) : eventType;
}

/** By event type without the prefix. */
const SEVERITIES: ReadonlyMap<string, Severity> = new Map(
  [...EVENTS].flatMap(([eventType, { span }]) =>
    span === undefined ? [] : [[shortEventType(eventType), span.severity]],
  ),
);

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
      return SEVERITIES.get(shortType) ?? INFO;
  }
}

/**
 * The name of the span that a log record belongs to, told from the record alone; `null` where nothing tells it.
 * OTLP carries only the span's id, and a span that never ends never comes. Read off real runs: what names a node is
 * logged in the node's `Node evaluated` span, what names a file while parsing in the file's `Asset parsed` span,
 * progress in its phase's span, and the rest in the invocation span.
 */
export function inferLogSpanName(record: LogRecord): string | null {
  const type = shortEventType(record.eventType);
  if (type === 'query.AdapterConnectionOpen' || type === 'query.AdapterConnectionClose') return null;
  const { attributes } = record;
  const uniqueId = attributes.text('unique_id');
  if (uniqueId !== undefined) return `Node evaluated (${uniqueId})`;
  const phase = attributes.text('phase')?.replace('EXECUTION_PHASE_', '');
  if (phase === undefined) return `dbt invocation (${invocationIdOf(record.traceId)})`;
  const path = attributes.text('relative_path');
  if (type === 'log.UserLogMessage' && path !== undefined) return `Asset parsed (${path})`;
  return `Phase: ${phase}`;
}
