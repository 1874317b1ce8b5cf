import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MESSAGE_LAYOUTS, ONEOF_FIELD } from '../../../src/parquet/message-layout.js';
import { Attributes, isNestedTooDeep } from '../../../src/record/attributes.js';
import { parseRecordLine, RecordParseError } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { anyLines } from './arbitrary-lines.js';
import { throughParquet, type Written } from './through-parquet.js';

/** What a reader of JSON finds in the lines. */
function asJson(lines: readonly Buffer[]): Written {
  const records: TelemetryRecord[] = [];
  const reasons = lines.map((line) => {
    const text = line.toString('utf8').replace(/\r$/, '');
    if (text.trim() === '') return undefined;
    if (isNestedTooDeep(text)) return 'nested deeper than 200 levels';
    try {
      records.push(parseRecordLine(text));
      return undefined;
    } catch (error) {
      if (error instanceof RecordParseError) return error.message;
      throw error;
    }
  });
  return { reasons, records };
}

/** All of a record but its attributes; texts without halves of surrogate pairs, numbers as their columns can hold them. */
function envelopeOf({ attributes: _, line: __, unknownFields: ___, ...envelope }: TelemetryRecord): unknown {
  const bounded = (name: string, value: number) =>
    name === 'code' ? Math.max(0, Math.min(value, 2 ** 32 - 1)) : Math.max(-(2 ** 31), Math.min(value, 2 ** 31 - 1));
  return JSON.parse(
    JSON.stringify(envelope, (name, value: unknown) => {
      if (typeof value === 'bigint') return String(value);
      if (value instanceof Attributes) return value.value;
      if (typeof value === 'number') return bounded(name, value);
      return typeof value === 'string' ? Buffer.from(value).toString('utf8') : value;
    }),
  );
}

function isZero(value: unknown): boolean {
  return (
    value === null ||
    value === '' ||
    value === 0 ||
    value === false ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

/** Whether every key of an object is a key of another too. */
function areNamesOf(value: unknown, other: object): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).every((key) => Object.hasOwn(other, key));
}

it('lines written as rows are the records that a reader of JSON finds in them, and the same lines are no records, whatever the lines', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyLines, { minLength: 1, maxLength: 30 }), async (texts) => {
      const lines = texts.map((text) => Buffer.from(text));
      const expected = asJson(lines);
      const found = await throughParquet(lines);
      expect(found.reasons).toEqual(expected.reasons);
      expect(found.records.map(envelopeOf)).toEqual(expected.records.map(envelopeOf));
      for (const [index, { attributes, eventType }] of expected.records.entries()) {
        const kept = found.records[index]?.attributes;
        // Attributes that are kept as they stand keep their spelling too: a name may be written with \u00e9.
        const respelled = JSON.stringify(kept?.value);
        const layout = MESSAGE_LAYOUTS.get(eventType);
        if (layout === undefined) expect(kept?.value).toEqual(attributes.value);
        for (const [name, value] of Object.entries(attributes.value)) {
          // A field named like an entry of the map that is the payload takes its place.
          const isReplaced = name === layout?.payloadMap && areNamesOf(value, attributes.value);
          if (isZero(value) || isReplaced || name === ONEOF_FIELD) continue;
          expect(respelled).toContain(JSON.stringify(name).slice(1, -1));
        }
      }
    }),
    { numRuns: propertyRuns(150) },
  );
});
