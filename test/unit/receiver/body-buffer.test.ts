import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BodyBuffer } from '../../../src/receiver/body-buffer.js';

test('pieces come out as one, whatever was expected', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40_000, size: 'max' }), { maxLength: 6 });
  fc.assert(
    fc.property(pieces, fc.nat(100_000), (list, expectedBytes) => {
      const buffer = new BodyBuffer(expectedBytes);
      for (const piece of list) buffer.append(Buffer.from(piece));
      const whole = Buffer.concat(list);
      expect(buffer.byteLength).toBe(whole.length);
      expect(Buffer.compare(buffer.bytes(), whole)).toBe(0);
    }),
    { numRuns: 50 },
  );
});

test('a body in one piece is not copied', () => {
  const piece = Buffer.from('whole');
  const buffer = new BodyBuffer(5);
  buffer.append(piece);
  expect(buffer.bytes().buffer).toBe(piece.buffer);
});

test('pieces of one byte take little more memory than they are long', () => {
  const buffer = new BodyBuffer(0);
  for (let i = 0; i < 1_000_000; i++) buffer.append(Buffer.from([i & 0xff]));
  expect(buffer.bytes().byteLength).toBe(1_000_000);
  expect(buffer.bytes().buffer.byteLength).toBeLessThan(2_200_000);
});

test('an announced length is set aside at once', () => {
  const buffer = new BodyBuffer(100_000);
  buffer.append(Buffer.from('a'));
  buffer.append(Buffer.from('b'));
  expect(buffer.bytes().buffer.byteLength).toBe(100_000);
});
