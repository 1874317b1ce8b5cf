import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EventPlans } from '../../../src/parquet/event-plan.js';
import { LineRows } from '../../../src/parquet/line-rows.js';
import { PlainRows } from '../../../src/parquet/plain-rows.js';
import { RowGroupColumns } from '../../../src/parquet/row-group.js';
import { isNestedTooDeep } from '../../../src/record/attributes.js';
import { tryParseRecordLine } from '../../../src/record/record-line.js';
import { SMALL_SAMPLES } from '../../fake/sample-run.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { anyLines } from './arbitrary-lines.js';
import { sampleLines } from './samples.js';

const real = SMALL_SAMPLES.flatMap(sampleLines);
/** Pieces of lines that may stand where others do. */
const values = [
  ...new Set(real.slice(0, 2_000).flatMap((line) => line.match(/"\w+":(?:"[^"\\]*"|\d+|null|true)/g) ?? [])),
];
const pieces = fc.constantFrom(
  ...['"', '\\"', '\\n', '\\u0001', '\\u00e9', 'é', '\ufffd', '{', '}', '[]', ',', '0', '1', '-', '.5', 'e1', 'null'],
  ...[
    'true',
    '""',
    '"0"',
    '"007"',
    '"18446744073709551615"',
    '{}',
    '{"a":1}',
    ' ',
    '\r',
    '"a":null,',
    '"phase":"Run",',
  ],
);

/** A line in which something is another. */
const changes: readonly ((line: string, at: number, piece: string) => string)[] = [
  (line) => line,
  (line, at, piece) => line.slice(0, at) + piece + line.slice(at),
  (line, at, piece) => line.slice(0, at) + piece + line.slice(at + 1),
  (line, at) => line.slice(0, at) + line.slice(at + 1),
  // A value in place of another, of the same name or not.
  (line, at, piece) => line.slice(0, at) + line.slice(at).replace(/:(?:"[^"\\]*"|\d+|null|true)/, `:${piece}`),
  (line, at) =>
    line.slice(0, at) + line.slice(at).replace(/"\w+":(?:"[^"\\]*"|\d+|null|true)/, values[at % values.length] ?? ''),
  (line, at) => line.slice(0, at) + line.slice(at).replace(/,"\w+":(?:"[^"\\]*"|\d+|null|true)/, ''),
];
const changedPairs = fc
  .tuple(fc.nat({ max: real.length - 2 }), fc.nat(), fc.nat(), pieces, fc.nat({ max: changes.length - 1 }))
  .map(([index, which, at, piece, change]) => {
    const pair = real.slice(index, index + 2);
    const line = pair[which % 2] ?? '';
    pair[which % 2] = changes[change]?.(line, at % line.length, piece) ?? line;
    return pair;
  });

/** @param mayWait whether starts wait for their ends, which `LineRows` then writes together */
function asWritten(lines: readonly string[], mayWait: boolean): unknown {
  const columns = new RowGroupColumns();
  const rows = new LineRows(columns, { isModern: true, toModern: (record) => record });
  const bytes = Buffer.from(`${lines.join('\n')}\n`);
  rows.begin(bytes.length);
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf('\n', start);
    rows.append(bytes, start, end, mayWait);
    start = end + 1;
  }
  rows.flush();
  return contentOf(columns);
}

function byPlainCode(lines: readonly string[]): unknown {
  const columns = new RowGroupColumns();
  const rows = new PlainRows(columns, new EventPlans(columns));
  for (const line of lines.join('\n').split('\n')) {
    const text = Buffer.from(line.replace(/\r$/, '')).toString('utf8');
    const record = isNestedTooDeep(text) ? undefined : tryParseRecordLine(text);
    if (record !== undefined) rows.write(record);
  }
  return contentOf(columns);
}

function contentOf(columns: RowGroupColumns): unknown {
  const { rowCount, bytes, chunks } = columns.finish();
  return { rowCount, bytes: Buffer.from(bytes).toString('latin1'), chunks };
}

it('rows that are written from cells are those that plain code writes, of changed lines of real runs', () => {
  fc.assert(
    fc.property(fc.array(changedPairs, { minLength: 1, maxLength: 8 }), (pairs) => {
      const right = byPlainCode(pairs.flat());
      expect(asWritten(pairs.flat(), true)).toEqual(right);
      expect(asWritten(pairs.flat(), false)).toEqual(right);
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

it('and so are those of made-up lines', () => {
  fc.assert(
    fc.property(fc.array(anyLines, { minLength: 1, maxLength: 8 }), (lines) => {
      expect(asWritten(lines, true)).toEqual(byPlainCode(lines));
    }),
    { numRuns: propertyRuns(300) },
  );
});

it.each(SMALL_SAMPLES)('and so are those of %s', (sample) => {
  const lines = sampleLines(sample);
  expect(asWritten(lines, true)).toEqual(byPlainCode(lines));
  expect(asWritten(lines, false)).toEqual(byPlainCode(lines));
});
