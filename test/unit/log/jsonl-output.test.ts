import { PassThrough, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/core/logger.js';
import type { Appended } from '../../../src/log/appended.js';
import { JsonlOutput } from '../../../src/log/jsonl-output.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { parseRecordLine } from '../../../src/record/record-line.js';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import { appendedRecords } from '../../fake/appended-records.js';
import { bufferedText } from '../../fake/buffered-text.js';

const traceId = parseTraceId('0123456789abcdef0123456789abcdef') as TraceId;

/** A record log in memory, of numbered records whose offsets are their numbers. */
function logOf(count: number): { reader: RecordLogReader; appended: (from: number, to: number) => Appended } {
  const line = (number: number) =>
    `{"record_type":"LogRecord","trace_id":"${traceId}","span_id":null,"span_name":null,"event_id":null,"time_unix_nano":"1","severity_number":9,"severity_text":"INFO","body":"${number}","event_type":"x","attributes":{}}`;
  const records: LoggedRecord[] = Array.from({ length: count }, (_, number) => ({
    record: parseRecordLine(line(number)),
    resource: UNKNOWN_RESOURCE,
    offset: number,
    endOffset: number + 1,
  }));
  return {
    reader: {
      async *read(_: TraceId, { fromOffset, toOffset }: LogRange) {
        for (const record of records.slice(fromOffset, toOffset)) yield [record];
      },
      lengthBytes: async () => count,
    },
    appended: (from, to) => appendedRecords(traceId, records.slice(from, to), to),
  };
}

const bodies = (text: string) => [...text.matchAll(/"body":"(\d+)"/g)].map(([, number]) => Number(number));
const range = (count: number) => Array.from({ length: count }, (_, number) => number);

describe('the JSONL stream', () => {
  test('carries every record once and in order, however they are appended', async () => {
    const stream = new PassThrough();
    const { reader, appended } = logOf(10);
    const output = new JsonlOutput(stream, { reader, logger: silentLogger });
    await output.start();
    output.onAppended(appended(0, 3));
    output.onAppended(appended(3, 4));
    output.onAppended(appended(4, 10));
    await output.shutdown(AbortSignal.timeout(1_000));
    expect(bodies(bufferedText(stream))).toEqual(range(10));
  });

  test('waits for a slow reader and holds nothing meanwhile', async () => {
    const seen: string[] = [];
    const stream = new Writable({
      highWaterMark: 1,
      write(chunk, _, done) {
        seen.push(String(chunk));
        setImmediate(done);
      },
    });
    const { reader, appended } = logOf(50);
    const output = new JsonlOutput(stream, { reader, logger: silentLogger });
    await output.start();
    for (const number of range(50)) output.onAppended(appended(number, number + 1));
    await output.shutdown(AbortSignal.timeout(5_000));
    expect(bodies(seen.join(''))).toEqual(range(50));
    expect(stream.listenerCount('drain')).toBe(0);
  });

  test('stops, and says so once, when its reader goes away', async () => {
    const warnings: string[] = [];
    const stream = new PassThrough({ highWaterMark: 1 });
    const { reader, appended } = logOf(10);
    const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
    const output = new JsonlOutput(stream, { reader, logger });
    await output.start();
    output.onAppended(appended(0, 5));
    stream.destroy(new Error('EPIPE'));
    await output.shutdown(AbortSignal.timeout(1_000));
    output.onAppended(appended(5, 10));
    expect(warnings).toEqual(['the reader closed the JSONL stream; records are still written to the data folder']);
  });

  test('gives up at the deadline when its reader does not read', async () => {
    const stream = new Writable({ highWaterMark: 1, write() {} });
    const { reader, appended } = logOf(10);
    const output = new JsonlOutput(stream, { reader, logger: silentLogger });
    await output.start();
    output.onAppended(appended(0, 10));
    await output.shutdown(AbortSignal.abort());
  });
});
