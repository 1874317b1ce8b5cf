import { describe, expect, it } from 'vitest';
import { groupBy } from '../../../src/core/lists.js';
import { decodePart, encodePart, splitPart } from '../../../src/kafka/part-encoding.js';
import type { RecordBatch } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';

/** What matters of a record on its way into a log: its line, its resource, and whether it waits for a name. */
function content(batches: readonly RecordBatch[]) {
  return batches.flatMap(({ resource, records }) =>
    records.map((record) => [formatRecordLine(record), resource, isNameless(record)] as const),
  );
}

function isNameless(record: TelemetryRecord): boolean {
  return record.recordType === 'LogRecord' && record.line === undefined && record.spanName === null;
}

describe('a part of the journal', () => {
  it.each(['build-mixed', 'joined', 'overlapping'])('says all that came, of %s', (sample) => {
    let namelessCount = 0;
    for (const { batches } of sampleDeliveries(sample)) {
      for (const traceId of new Set(batches.map((batch) => batch.traceId))) {
        const own = batches.filter((batch) => batch.traceId === traceId);
        const decoded = content(decodePart(traceId, encodePart(own)));
        expect(decoded).toEqual(content(own));
        namelessCount += decoded.filter(([, , nameless]) => nameless).length;
      }
    }
    expect(namelessCount).toBeGreaterThan(0);
  });

  it.each([
    ['without an end', '{"resource":{"attributes":{},"scope":{"name":"","version":""}}}'],
    ['whose resource is none', '{"resource":{}}\n'],
    ['without a resource for its records', '{"record_type":"SpanStart"}\n'],
  ])('is refused where it is one %s', (_what, text) => {
    const [delivery] = sampleDeliveries('parse');
    const traceId = delivery?.batches[0]?.traceId;
    if (traceId === undefined) throw new Error('the sample is empty');
    expect(() => decodePart(traceId, Buffer.from(text))).toThrow(/part of the journal/);
  });

  it('is cut into parts that say all of it, none longer than allowed but for a single record', () => {
    for (const { batches } of sampleDeliveries('build-mixed')) {
      for (const [traceId, list] of groupBy(batches, (batch) => batch.traceId)) {
        const part = encodePart(list);
        const pieces = splitPart(part, 20_000);
        const all = pieces.flatMap((piece) => decodePart(traceId, piece));
        expect(content(all)).toEqual(content(decodePart(traceId, part)));
        for (const piece of pieces) {
          const records = decodePart(traceId, piece).flatMap((batch) => batch.records);
          expect(piece.length <= 20_000 || records.length === 1).toBe(true);
        }
      }
    }
  });
});
