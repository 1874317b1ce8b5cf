import { Appended } from '../../src/log/appended.js';
import type { LoggedRecord } from '../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../src/record/attributes.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import type { TraceId } from '../../src/record/telemetry-record.js';

/** What a record log says of records that it has just appended. */
export function appendedRecords(traceId: TraceId, logged: readonly LoggedRecord[], lengthBytes: number): Appended {
  const [first] = logged;
  if (first === undefined) return new Appended(traceId, [], lengthBytes);
  const piece = {
    resource: UNKNOWN_RESOURCE,
    offset: first.offset,
    lines: Buffer.from(logged.map(({ record }) => `${formatRecordLine(record)}\n`).join('')),
    records: logged.map(({ record }) => record),
    lineBytes: logged.map(({ offset, endOffset }) => endOffset - offset),
  };
  return new Appended(traceId, [piece], lengthBytes);
}
