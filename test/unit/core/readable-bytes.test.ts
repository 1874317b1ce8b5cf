import { expect, test } from 'vitest';
import { readableBytes } from '../../../src/core/text.js';

test.each([
  [0, '0 bytes'],
  [1_023, '1023 bytes'],
  [1_536, '1.5 KiB'],
  [5 * 2 ** 30, '5 GiB'],
  [63.4 * 2 ** 30, '63 GiB'],
  [3_000 * 2 ** 40, '3000 TiB'],
])('%d bytes are written %s', (bytes, text) => expect(readableBytes(bytes)).toBe(text));
