import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type FileRange, RangeEncoder, type RangeStep } from '../../../src/parquet/line-encoder.js';
import { sampleLines } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'encode-range-'));
const path = join(folder, 'lines.jsonl');
afterAll(() => rmSync(folder, { recursive: true }));

const ALL: FileRange = { fromOffset: 0, toOffset: Number.POSITIVE_INFINITY };
const limits = { maxRowGroupRows: 100_000, maxRowGroupBytes: 1e9, maxLineBytes: 1e9, isRecordLog: false };

function encode(content: string, ranges: readonly FileRange[], own: Partial<typeof limits> = {}): RangeStep[][] {
  writeFileSync(path, content);
  const file = openSync(path, 'r');
  try {
    const encoder = new RangeEncoder({ ...limits, ...own }, (record) => record);
    return ranges.map((range) => [...encoder.encode(file, range)]);
  } finally {
    closeSync(file);
  }
}

const recordCount = (steps: readonly RangeStep[]) => steps.reduce((sum, step) => sum + step.recordCount, 0);
const rejectsOf = (steps: readonly RangeStep[]) => steps.flatMap((step) => step.rejects);

describe('RangeEncoder', () => {
  it('takes each line in exactly one range, wherever the file is cut', () => {
    // The sixth and the seventh are a span's start and its end, which are written together where they are in one range.
    const texts = [...sampleLines('parse').slice(0, 7), 'no record', ''];
    const arbitrary = fc.record({
      lines: fc.array(fc.constantFrom(...texts), { maxLength: 12 }),
      cuts: fc.array(fc.nat({ max: 6_000 }), { maxLength: 4 }),
      end: fc.constantFrom('', '\n'),
    });
    fc.assert(
      fc.property(arbitrary, ({ lines, cuts, end }) => {
        const borders = [0, ...cuts.toSorted((a, b) => a - b), Number.POSITIVE_INFINITY];
        const ranges = borders.slice(1).map((toOffset, i) => ({ fromOffset: borders[i] ?? 0, toOffset }));
        const parts = encode(lines.join('\n') + end, ranges);
        let linesBefore = 0;
        const rejected = parts.flatMap((steps) => {
          const numbers = rejectsOf(steps).map(({ line }) => linesBefore + line);
          linesBefore += steps.at(-1)?.lineCount ?? 0;
          return numbers;
        });
        expect(parts.reduce((sum, steps) => sum + recordCount(steps), 0)).toBe(
          lines.filter((line) => line.startsWith('{')).length,
        );
        expect(rejected).toEqual(lines.flatMap((line, index) => (line === 'no record' ? [index + 1] : [])));
      }),
      { numRuns: 300 },
    );
  });

  it('encodes a range as a new one does after others, and after one that was given up', () => {
    const lines = (name: string, count: number) =>
      Array.from({ length: count }, () => `${sampleLines(name).join('\n')}\n`);
    writeFileSync(path, [...lines('build-mixed', 12), ...lines('parse', 3)].join(''));
    const content = readFileSync(path);
    const middle = Buffer.byteLength(lines('build-mixed', 12).join(''));
    expect(middle).toBeGreaterThan(2 ** 20);
    const second = { fromOffset: middle, toOffset: content.length };
    const file = openSync(path, 'r');
    try {
      const groupsOf = (encoder: RangeEncoder, range: FileRange) =>
        [...encoder.encode(file, range)].flatMap(({ groups }) => groups);
      const [first, other] = [ALL, second].map((range) =>
        groupsOf(new RangeEncoder(limits, (record) => record), range),
      );
      const encoder = new RangeEncoder(limits, (record) => record);
      expect(groupsOf(encoder, ALL)).toEqual(first);
      for (const step of encoder.encode(file, ALL)) {
        expect(step.recordCount).toBeGreaterThan(0);
        break;
      }
      expect(groupsOf(encoder, second)).toEqual(other);
      expect(groupsOf(encoder, ALL)).toEqual(first);
    } finally {
      closeSync(file);
    }
  });

  it('ends row groups where they are full, between a start and its end too', () => {
    const [start = '', end = ''] = sampleLines('parse').slice(5, 7);
    const lines = Array.from({ length: 20 }, () => `${start}\n${end}\n`).join('');
    const [odd = [], single = []] = [7, 1].map((maxRowGroupRows) =>
      encode(lines, [ALL], { maxRowGroupRows }).flatMap((steps) => steps.flatMap(({ groups }) => groups)),
    );
    expect(odd.map(({ rowCount }) => rowCount)).toEqual([7, 7, 7, 7, 7, 5]);
    expect(single.map(({ rowCount }) => rowCount)).toEqual(Array.from({ length: 40 }, () => 1));
  });

  it('passes over a line longer than the limit, and counts it', () => {
    const [line = ''] = sampleLines('parse');
    const long = `{"a":"${'x'.repeat(3_000_000)}"}`;
    for (const content of [`${line}\n${long}\n${line}\n`, `${line}\n${line}\n${long}`, `${long}\n${line}\n${line}`]) {
      const [steps = []] = encode(content, [ALL], { maxLineBytes: 2_000_000 });
      expect(recordCount(steps)).toBe(2);
      expect(rejectsOf(steps)).toEqual([{ line: content.split('\n').indexOf(long) + 1, reason: undefined }]);
    }
  });

  it('takes a line of several megabytes', () => {
    const [line = ''] = sampleLines('parse');
    const long = line.replace('"attributes":{', `"attributes":{"a":"${'x'.repeat(5_000_000)}",`);
    const [steps = []] = encode(`${line}\n${long}\n${line}\n`, [ALL]);
    expect([recordCount(steps), rejectsOf(steps)]).toEqual([3, []]);
  });

  it('ends row groups at their limit', () => {
    const lines = sampleLines('build-clean').slice(0, 25);
    const [steps = []] = encode(lines.join('\n'), [ALL], { maxRowGroupRows: 10 });
    expect(steps.flatMap((step) => step.groups.map((group) => group.rowCount))).toEqual([10, 10, 5]);
  });

  it('takes the last line of a record log only when it is complete', () => {
    const [line = ''] = sampleLines('parse');
    const [steps = []] = encode(`${line}\n${line}`, [ALL], { isRecordLog: true });
    expect(recordCount(steps)).toBe(1);
  });
});
