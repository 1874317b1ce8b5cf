import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteSource } from '../../../src/parquet/byte-source.js';
import { CanonicalRows } from '../../../src/parquet/canonical-rows.js';
import { LineRows } from '../../../src/parquet/line-rows.js';
import { RecordRows } from '../../../src/parquet/record-rows.js';
import { type EncodedRowGroup, RowGroupColumns } from '../../../src/parquet/row-group-columns.js';
import { isNestedTooDeep } from '../../../src/record/json-nesting.js';
import { parseRecordLine, RecordParseError } from '../../../src/record/record-line.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { anyLines } from './arbitrary-lines.js';
import { SAMPLES_WITH_PARQUET, sampleLines } from './samples.js';

describe('rows written from bytes', () => {
  it.each(SAMPLES_WITH_PARQUET)('are those written from records, for %s, without a record of any line', (sample) => {
    const lines = sampleLines(sample);
    const columns = new RowGroupColumns();
    const canonical = new CanonicalRows(columns);
    const taken = lines.filter((line) => canonical.append(ByteSource.of(line), 0, Buffer.byteLength(line)));
    expect(taken).toHaveLength(lines.length);
    const { bytes, ...rest } = columns.finish();
    const { bytes: recordsBytes, ...recordsRest } = byRecords(lines).group;
    expect(rest).toEqual(recordsRest);
    expect(Buffer.compare(bytes, recordsBytes)).toBe(0);
  });

  it('are those written from records, byte by byte, and the same lines are no records, whatever the lines', () => {
    const one = new RowGroupColumns();
    const other = new RowGroupColumns();
    fc.assert(
      fc.property(fc.array(anyLines, { minLength: 1, maxLength: 30 }), (lines) => {
        expect(byLines(lines, one)).toEqual(byRecords(lines, other));
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it('are mostly written without a record, so that the comparison says something', () => {
    const canonical = new CanonicalRows(new RowGroupColumns());
    const lines = fc.sample(anyLines, { numRuns: 2_000, seed: 1 });
    const taken = lines.filter((line) => canonical.append(ByteSource.of(line), 0, Buffer.byteLength(line)));
    expect(taken.length).toBeGreaterThan(lines.length / 20);
  });

  it('keep what is no valid UTF-8 as the replacement characters that a text has for it', () => {
    const [line = ''] = sampleLines('parse');
    const [before = '', after = ''] = line.split('INFO', 2);
    const damaged = Buffer.concat([Buffer.from(before), Buffer.from([0x49, 0xff, 0xc3]), Buffer.from(`${after}`)]);
    const columns = new RowGroupColumns();
    new LineRows(columns, { checksNesting: true, toModern: (record) => record }).append(
      new ByteSource(damaged),
      0,
      damaged.length,
      false,
    );
    expect(columns.finish()).toEqual(byRecords([damaged.toString('utf8')]).group);
  });
});

interface Outcome {
  readonly group: EncodedRowGroup;
  readonly reasons: readonly (string | undefined)[];
}

function byLines(lines: readonly string[], columns: RowGroupColumns): Outcome {
  const rows = new LineRows(columns, { checksNesting: true, toModern: (record) => record });
  const bytes = lines.map((line) => Buffer.from(`${line}\n`));
  const reasons = bytes.map((line) => rows.append(new ByteSource(line), 0, line.length - 1, false));
  return { reasons, group: columns.finish() };
}

/** The general way, which is the reference. */
function byRecords(lines: readonly string[], columns = new RowGroupColumns()): Outcome {
  const rows = new RecordRows(columns);
  const reasons = lines.map((line) => {
    // Lone surrogates are not in files.
    const text = Buffer.from(line.replace(/\r$/, '')).toString('utf8');
    if (text.trim() === '') return undefined;
    if (isNestedTooDeep(text)) return 'nested deeper than 200 levels';
    try {
      rows.append(parseRecordLine(text));
      return undefined;
    } catch (error) {
      if (error instanceof RecordParseError) return error.message;
      throw error;
    }
  });
  return { reasons, group: columns.finish() };
}
