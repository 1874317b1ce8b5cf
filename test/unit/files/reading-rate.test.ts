import { expect, test } from 'vitest';
import { describeRate } from '../../../src/files/import-files.js';

test('a rate tells files, time, records and bytes', () => {
  expect(describeRate({ fileCount: 3, recordCount: 12_390, byteCount: 16 * 2 ** 20, elapsedMs: 2_100 })).toBe(
    'from 3 files in 2.1 s (5,900 records and 7.6 MiB a second)',
  );
});

test('a rate of a pipe has no bytes, and one of next to no time is not too large', () => {
  expect(describeRate({ fileCount: 1, recordCount: 10, byteCount: 0, elapsedMs: 0 })).toBe(
    'from 1 file in 0.1 s (100 records a second)',
  );
});
