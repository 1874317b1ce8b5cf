import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { sampleBodies } from '../../fake/sample-run.js';
import { misscan } from '../../fake/scanned-line.js';
import { propertyRuns } from '../../tool/property-runs.js';

const lines = [...sampleBodies('build-mixed'), ...sampleBodies('fail-fast')]
  .flatMap(({ signal, body }) => decodeBody(signal, body).delivery.batches.flatMap(({ records }) => records))
  .filter(({ recordType }) => recordType !== 'SpanStart')
  .map((record) => Buffer.from(`${formatRecordLine(record)}\n`));

/** What a damaged line may have anywhere. */
const PIECES = [
  ...['"', '\\', '{', '}', '[', ']', ':', ',', '0', '9', '-', '.', 'e', 'a', ' ', '\n', '\u0000', 'ü', '\u007f'],
  ...['null', 'true', 'false', '{}', '[]', '""', '\\n', '\\u0041', '\\u001f', '\\ud83d', '\\/', '-1', '1.5', '0'],
  ...[',"a":1', '"zeta":"x",', ',"newer":{"a":[1]}', '}}', '}\n', '268435456', '"EXECUTION_PHASE_RUN"', '9', '13'],
  ...['x'.repeat(130), '"}', '{"record_type":"SpanEnd","trace_id":"'],
].map((text) => Buffer.from(text));

interface Damage {
  /** Where, as a fraction of the line. */
  readonly at: number;
  /** How many bytes go. */
  readonly gone: number;
  readonly put: Uint8Array;
}

const damages: fc.Arbitrary<readonly Damage[]> = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    gone: fc.oneof(fc.constantFrom(0, 1, 2), fc.nat(40), fc.constant(100_000)),
    put: fc.oneof(fc.constantFrom(Buffer.alloc(0), ...PIECES), fc.uint8Array({ maxLength: 3 })),
  }),
  { minLength: 1, maxLength: 3 },
);

function damaged(line: Buffer, { at, gone, put }: Damage): Buffer {
  const from = Math.floor(at * line.length);
  return Buffer.concat([line.subarray(0, from), put, line.subarray(from + gone)]);
}

it('a line that is damaged anywhere is left to plain code, or gives the very line', () => {
  fc.assert(
    fc.property(fc.constantFrom(...lines), damages, fc.boolean(), (line, all, isLast) => {
      expect(misscan(all.reduce(damaged, line), isLast)).toBeUndefined();
    }),
    { numRuns: propertyRuns(30_000) },
  );
});

it('a line in which a value has become another one is left to plain code, or gives the very line', () => {
  const values = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('{}', '{"a":1}', '[1', 'EXECUTION_PHASE_RUN', 'NODE_OUTCOME_SUCCESS', '12', '', null, true, false),
    fc.oneof(fc.integer(), fc.nat(300), fc.double(), fc.bigInt().map(String)),
    fc.jsonValue({ maxDepth: 3 }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...lines), fc.nat(), values, (line, number, value) => {
      const text = line.toString();
      const places = [...text.matchAll(/:("(?:[^"\\]|\\.)*"|\d+|null|true|false)(?=[,}])/g)];
      const place = places[number % places.length];
      const at = (place?.index ?? 0) + 1;
      const changed = `${text.slice(0, at)}${JSON.stringify(value)}${text.slice(at + (place?.[1]?.length ?? 0))}`;
      expect(misscan(Buffer.from(changed))).toBeUndefined();
    }),
    { numRuns: propertyRuns(12_000) },
  );
});
