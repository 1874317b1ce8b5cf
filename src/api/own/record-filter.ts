import { z } from 'zod';
import type { LoggedRecord } from '../../log/record-log.js';
import { ApiError } from '../api-error.js';

const SEVERITIES = { trace: 1, debug: 5, info: 9, warn: 13, error: 17 } as const;

/** What of a run's records is asked for. */
export const recordFilterSchema = z.object({
  event_type: z.string().min(1).max(200).optional().meta({
    description: 'the whole event type, or its last word: NodeProcessed',
  }),
  node: z.string().min(1).max(1_000).optional().meta({ description: 'the unique_id in its attributes' }),
  severity: z.enum(['trace', 'debug', 'info', 'warn', 'error']).optional().meta({ description: 'this or above' }),
  record_type: z.enum(['SpanStart', 'SpanEnd', 'LogRecord']).optional(),
});

/** Reads parameters. @throws ApiError 400 that names what is wrong */
export function parsedParameters<T extends z.ZodType>(schema: T, parameters: unknown): z.output<T> {
  const result = schema.safeParse(parameters);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ApiError(400, `${issue?.path.join('.') || 'the request'}: ${issue?.message ?? 'cannot be read'}.`);
}

/** Whether a record is asked for. */
export function recordFilter(filter: z.output<typeof recordFilterSchema>): (logged: LoggedRecord) => boolean {
  const { event_type: eventType, node, severity, record_type: recordType } = filter;
  const leastSeverity = severity === undefined ? 0 : SEVERITIES[severity];
  return ({ record }) =>
    record.severityNumber >= leastSeverity &&
    (recordType === undefined || record.recordType === recordType) &&
    (eventType === undefined || record.eventType === eventType || record.eventType.endsWith(`.${eventType}`)) &&
    (node === undefined || record.attributes.text('unique_id') === node);
}
