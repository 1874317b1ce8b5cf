import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { MESSAGE_LAYOUTS } from '../../../src/parquet/message-layout.js';
import { Attributes, type JsonObject } from '../../../src/record/attributes.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import {
  parseSpanId,
  parseTraceId,
  type SpanLink,
  type TelemetryRecord,
} from '../../../src/record/telemetry-record.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { recordsOf, writeParquet } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'parquet-round-trip-'));
afterAll(() => rmSync(folder, { recursive: true }));

const hex = (length: number) =>
  fc
    .array(fc.integer({ min: 0, max: 15 }), { minLength: length, maxLength: length })
    .map((digits) => digits.map((digit) => digit.toString(16)).join(''));
const traceIds = hex(32)
  .map(parseTraceId)
  .filter((id) => id !== undefined);
const spanIds = hex(16)
  .map(parseSpanId)
  .filter((id) => id !== undefined);
const times = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const texts = fc.string({ unit: 'grapheme', maxLength: 20 });
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });

/** Names of columns and fields among others, with values that fit them or not: a layout must not mix them up. */
const names = fc.oneof(fc.constantFrom('name', 'phase', 'duration_ms', 'sql', 'extra', 'line', '__proto__'), texts);
const values = fc.oneof(texts, fc.integer(), fc.constantFrom('7', true), fc.jsonValue({ maxDepth: 2 }));
const attributes = fc
  .array(fc.tuple(names, values), { maxLength: 6 })
  .map((entries) => Attributes.of(JSON.parse(JSON.stringify(Object.fromEntries(entries))) as JsonObject));

const links: fc.Arbitrary<readonly SpanLink[]> = fc.array(
  fc.record({ traceId: traceIds, spanId: spanIds, attributes }),
  { maxLength: 3 },
);
const statuses = fc.record({ code: fc.integer({ min: 0, max: 2 }), message: orNull(texts) });

function recordsOfType(eventType: fc.Arbitrary<string>): fc.Arbitrary<TelemetryRecord> {
  const severityNumber = fc.integer({ min: 0, max: 24 });
  const envelope = { traceId: traceIds, severityNumber, severityText: texts, eventType, attributes };
  const span = {
    ...envelope,
    spanId: spanIds,
    spanName: texts,
    parentSpanId: orNull(spanIds),
    links: orNull(links),
    startTimeUnixNano: times,
  };
  return fc.oneof(
    fc.record({ recordType: fc.constant('SpanStart' as const), ...span }),
    fc.record({
      recordType: fc.constant('SpanEnd' as const),
      ...span,
      endTimeUnixNano: times,
      status: orNull(statuses),
    }),
    fc.record({
      recordType: fc.constant('LogRecord' as const),
      ...envelope,
      spanId: orNull(spanIds),
      spanName: orNull(texts),
      eventId: orNull(fc.uuid()),
      timeUnixNano: times,
      body: texts,
    }),
  );
}

async function throughParquet(records: readonly TelemetryRecord[]): Promise<TelemetryRecord[]> {
  const path = join(folder, 'property.parquet');
  await writeParquet(path, records, { maxRowGroupRows: 7, maxRowGroupBytes: 1e9 });
  return recordsOf(path);
}

function comparable(records: readonly TelemetryRecord[]): unknown[] {
  return records.map((record) => JSON.parse(formatRecordLine(record)));
}

it('gives back every record of an event type that it does not know', async () => {
  const unknown = recordsOfType(texts.filter((text) => !MESSAGE_LAYOUTS.has(text)));
  await fc.assert(
    fc.asyncProperty(fc.array(unknown, { maxLength: 20 }), async (records) => {
      expect(comparable(await throughParquet(records))).toEqual(comparable(records));
    }),
    { numRuns: propertyRuns(150) },
  );
});

it('gives back the same record again once it has been through Parquet, whatever its attributes', async () => {
  const known = recordsOfType(fc.constantFrom(...MESSAGE_LAYOUTS.keys()));
  await fc.assert(
    fc.asyncProperty(fc.array(known, { maxLength: 20 }), async (records) => {
      const once = await throughParquet(records);
      expect(comparable(await throughParquet(once))).toEqual(comparable(once));
    }),
    { numRuns: propertyRuns(150) },
  );
});

it('loses no attribute but zero values, whatever the message', async () => {
  const known = recordsOfType(fc.constantFrom(...MESSAGE_LAYOUTS.keys()));
  await fc.assert(
    fc.asyncProperty(known, async (record) => {
      const [read] = await throughParquet([record]);
      for (const [name, value] of Object.entries(record.attributes.value)) {
        const isZero = value === null || value === '' || value === 0 || value === false || isEmpty(value);
        if (!isZero) expect(JSON.stringify(read?.attributes.value)).toContain(JSON.stringify(name));
      }
    }),
    { numRuns: propertyRuns(300) },
  );
});

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
