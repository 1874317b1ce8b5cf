import type { Response } from 'express';
import { z } from 'zod';
import type { RecordLogReader } from '../../log/record-log.js';
import { formatRecordLine } from '../../record/record-line.js';
import { success } from '../envelope.js';
import { formatPosition, type LogPosition, movedPosition, parsePosition } from './log-position.js';
import { recordFilter, recordFilterSchema } from './record-filter.js';
import type { FoundRun } from './run-finder.js';
import { writeOut } from './write-out.js';

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
  let place: LogPosition = cursor === undefined ? [] : parsePosition(cursor, traceIds.length);
  let isFull = false;
  let count = 0;
  let sentBytes = 0;
  let readBytes = 0;
  const [head = '', tail = ''] = JSON.stringify(success([])).split('[]');
  response.type('application/json');
  await writeOut(response, `${head}[`);
  for (const [trace, traceId] of traceIds.entries()) {
    for await (const chunk of reader.read(traceId, { fromOffset: place[trace] ?? 0 })) {
      let text = '';
      for (const logged of chunk) {
        isFull = count >= limit || sentBytes > MAX_PAGE_BYTES || readBytes > MAX_READ_BYTES;
        if (isFull) break;
        place = movedPosition(place, trace, logged.endOffset);
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
  const extra = { count, next_cursor: isFull ? formatPosition(place) : null };
  response.end(`]${tail.slice(0, -1)},"extra":${JSON.stringify(extra)}}`);
}
