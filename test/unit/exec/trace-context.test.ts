import { expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent } from '../../../src/exec/command-environment.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test.each([
  [`00-${TRACE}-${SPAN}-01`, '01'],
  [` 00-${TRACE}-${SPAN}-00 `, '00'],
  // A later version may have more fields.
  [`cc-${TRACE}-${SPAN}-01-what-comes`, '01'],
])('reads %s', (text, flags) => {
  expect(parseTraceparent(text)).toEqual({ traceId: TRACE, parentSpanId: SPAN, flags });
});

test.each([
  '',
  TRACE,
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE}-${SPAN}-1`,
])('takes %j for none', (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

test('writes what it read', () => {
  const text = `00-${TRACE}-${SPAN}-01`;
  const context = parseTraceparent(text);
  expect(context && formatTraceparent(context)).toBe(text);
});
