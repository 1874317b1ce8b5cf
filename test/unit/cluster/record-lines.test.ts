import { describe, expect, it } from 'vitest';
import { decodeRecords, encodeRecords, splitLines } from '../../../src/cluster/kafka/record-lines.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { RecordBatch } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';

/** What matters of a record on its way into a log: its line, its resource, and whether it waits for a name. */
function content(batches: readonly RecordBatch[]) {
  const found = batches.flatMap(({ resource, records }) =>
    records.map((record) => [formatRecordLine(record), resource, isNameless(record)] as const),
  );
  // Those that wait stand apart from the others.
  return [...found.filter(([, , waits]) => !waits), ...found.filter(([, , waits]) => waits)];
}

function isNameless(record: TelemetryRecord): boolean {
  return record.recordType === 'LogRecord' && record.line === undefined && record.spanName === null;
}

function decoded(parts: ReturnType<typeof encodeRecords>): readonly RecordBatch[] {
  return parts.flatMap(({ lines, header }) => {
    const { batches, rejects } = decodeRecords(lines, header);
    expect(rejects).toEqual([]);
    return batches;
  });
}

const batchesOf = (sample: string) => [...sampleDeliveries(sample)].flatMap(({ batches }) => batches);

describe('records as lines of messages', () => {
  it.each(['build-mixed', 'joined', 'overlapping'])('say all that came, of %s', (sample) => {
    const batches = batchesOf(sample);
    const found = content(decoded(encodeRecords(batches)));
    expect(found).toEqual(content(batches));
    expect(found.filter(([, , waits]) => waits).length).toBeGreaterThan(0);
  });

  it.each(['{"resource":{}}', '{"resource":', '1'])('are kept without a resource where the header is %s', (header) => {
    const [part] = encodeRecords(batchesOf('parse'));
    if (part === undefined) throw new Error('the sample is empty');
    const { batches, rejects } = decodeRecords(part.lines, header);
    expect(rejects).toEqual([]);
    expect(batches.map(({ resource }) => resource)).toEqual(batches.map(() => UNKNOWN_RESOURCE));
    expect(batches.length).toBeGreaterThan(0);
  });

  it('are kept where other lines are none, which are named', () => {
    const [part] = encodeRecords(batchesOf('parse'));
    if (part === undefined) throw new Error('the sample is empty');
    const { batches, rejects } = decodeRecords(Buffer.concat([Buffer.from('no record\n'), part.lines]), part.header);
    expect(content(batches)).toEqual(content(decoded([part])));
    expect(rejects).toMatchObject([{ place: 'line 1' }]);
  });

  it('are cut into parts that say all of it, none longer than allowed but for what stays together', () => {
    for (const { lines } of encodeRecords(batchesOf('build-mixed'))) {
      for (const maxBytes of [1, 700, 20_000, lines.length, lines.length + 1]) {
        const parts = splitLines(lines, maxBytes);
        expect(linesOf(Buffer.concat(parts)).sort()).toEqual(linesOf(lines).sort());
        for (const part of parts) {
          expect(part.at(-1)).toBe(10);
          expect(part.length <= maxBytes || new Set(linesOf(part).map(placeOf)).size === 1).toBe(true);
        }
      }
    }
  });

  it('come to one part where log records without an id are of one span and time', () => {
    const batches = batchesOf('build-mixed');
    const logs = batches.flatMap(({ records }) => records).filter(isNameless);
    const [batch] = batches;
    if (batch === undefined || logs.length < 10) throw new Error('the sample is too small');
    // Each comes twice, far apart.
    const [part] = encodeRecords([{ ...batch, records: [...logs, ...logs] }]);
    const parts = splitLines(part?.lines ?? Buffer.alloc(0), 5_000);
    expect(parts.length).toBeGreaterThan(5);
    for (const line of new Set(linesOf(part?.lines ?? Buffer.alloc(0)))) {
      const counts = parts.map((one) => linesOf(one).filter((other) => other === line).length);
      expect(counts.filter((count) => count > 0)).toHaveLength(1);
    }
  });
});

const linesOf = (bytes: Buffer): string[] => bytes.toString().trimEnd().split('\n');

/** What log records share that stay together; a line of any other record by itself. */
function placeOf(line: string): string {
  const { record_type, event_id, span_id, time_unix_nano } = JSON.parse(line);
  return record_type === 'LogRecord' && event_id === null ? `${span_id} ${time_unix_nano}` : line;
}
