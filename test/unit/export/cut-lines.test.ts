import { expect, it } from 'vitest';
import { cutLines } from '../../../src/export/run-mapper.js';
import { ENGINE } from './mapping/read-sample.js';

const WHOLE = { resource: ENGINE, offset: 100, lines: Buffer.from('ab\ncdef\ng\n') };
const text = (lines: Uint8Array) => Buffer.from(lines).toString();

it.each([
  [0, '', 'ab\ncdef\ng\n'],
  [100, '', 'ab\ncdef\ng\n'],
  [101, 'ab\n', 'cdef\ng\n'],
  [103, 'ab\n', 'cdef\ng\n'],
  [104, 'ab\ncdef\n', 'g\n'],
  [108, 'ab\ncdef\n', 'g\n'],
  [109, 'ab\ncdef\ng\n', ''],
  [500, 'ab\ncdef\ng\n', ''],
])('lines cut at %i are those that begin before it, and the others', (atOffset, before, behind) => {
  const [first, second] = cutLines(WHOLE, atOffset);
  expect([text(first.lines), text(second.lines)]).toEqual([before, behind]);
  expect([first.offset, second.offset]).toEqual([100, 100 + before.length]);
});
