import type { Response } from 'express';
import { z } from 'zod';
import type { LoggedRecord, RecordLogReader } from '../../log/record-log.js';
import { formatRecordLine } from '../../record/record-line.js';
import { ApiError } from '../api-error.js';
import { success } from '../envelope.js';
import { writeOut } from '../event-stream.js';
import type { FoundRun } from './run-finder.js';

/** A position in the record logs of a run: how far each of its traces was read, in bytes. What is missing is 0. */
export type LogPosition = readonly number[];

/** Formats a position as cursors and event ids have it: `4711.0.33`. */
export function formatPosition(position: LogPosition): string {
  return position.join('.');
}

/** Reads a position. @param traceCount how many traces the run has @throws ApiError 400 */
export function parsePosition(text: string, traceCount: number): LogPosition {
  const position = text.split('.').map(Number);
  if (!/^[0-9]{1,15}(\.[0-9]{1,15})*$/.test(text) || position.length > Math.max(traceCount, 1)) {
    throw new ApiError(400, 'cursor: is not a cursor of this run; leave it out to begin at the first record.');
  }
  return position;
}

/** Returns the position with one trace read as far as `offset`. */
export function movedPosition(position: LogPosition, trace: number, offset: number): LogPosition {
  return Array.from({ length: Math.max(position.length, trace + 1) }, (_, at) =>
    at === trace ? offset : (position[at] ?? 0),
  );
}

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

/** Returns a function that says whether a record is asked for. */
export function recordFilter(filter: z.output<typeof recordFilterSchema>): (logged: LoggedRecord) => boolean {
  const { event_type: eventType, node, severity, record_type: recordType } = filter;
  const leastSeverity = severity === undefined ? 0 : SEVERITIES[severity];
  return ({ record }) =>
    record.severityNumber >= leastSeverity &&
    (recordType === undefined || record.recordType === recordType) &&
    (eventType === undefined || record.eventType === eventType || record.eventType.endsWith(`.${eventType}`)) &&
    (node === undefined || record.attributes.text('unique_id') === node);
}

/** Bytes of records in one page at most, and at least one record. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
/** Bytes of record logs that are read for one page at most: a page may have fewer records than asked for, or none. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

export const recordPageSchema = recordFilterSchema.extend({
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  cursor: z.string().optional().meta({ description: 'next_cursor of the page before' }),
});

/** Writes a page of a run's records: each as its line is in the record log. Nothing but the lines at hand is in memory. */
export async function sendRecordPage(
  { traceIds }: FoundRun,
  { limit, cursor, ...filter }: z.output<typeof recordPageSchema>,
  reader: Pick<RecordLogReader, 'read'>,
  response: Response,
): Promise<void> {
  const isWanted = recordFilter(filter);
  let position: LogPosition = cursor === undefined ? [] : parsePosition(cursor, traceIds.length);
  let isFull = false;
  let count = 0;
  let sentBytes = 0;
  let readBytes = 0;
  const [head = '', tail = ''] = JSON.stringify(success([])).split('[]');
  response.type('application/json');
  await writeOut(response, `${head}[`);
  for (const [trace, traceId] of traceIds.entries()) {
    for await (const chunk of reader.read(traceId, { fromOffset: position[trace] ?? 0 })) {
      let text = '';
      for (const logged of chunk) {
        isFull = count >= limit || sentBytes > MAX_PAGE_BYTES || readBytes > MAX_READ_BYTES;
        if (isFull) break;
        position = movedPosition(position, trace, logged.endOffset);
        readBytes += logged.endOffset - logged.offset;
        if (!isWanted(logged)) continue;
        const line = formatRecordLine(logged.record);
        text += `${count === 0 ? '' : ','}\n${line}`;
        sentBytes += line.length;
        count += 1;
      }
      await writeOut(response, text);
      if (isFull || response.destroyed) break;
    }
    if (isFull || response.destroyed) break;
  }
  const extra = { count, next_cursor: isFull ? formatPosition(position) : null };
  response.end(`]${tail.slice(0, -1)},"extra":${JSON.stringify(extra)}}`);
}
