import { invocationIdOf } from '../record/ids.js';
import type { LogRecord } from '../record/telemetry-record.js';
import { shortEventType } from './event-type.js';

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
