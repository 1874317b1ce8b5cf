import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BufferPool } from '../../../src/core/bytes.js';
import { BodyBuffer } from '../../../src/otlp/read-body.js';

test('pieces come out as one, whatever was expected', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40_000, size: 'max' }), { maxLength: 6 });
  fc.assert(
    fc.property(pieces, fc.nat(100_000), (list, expectedBytes) => {
      const buffer = new BodyBuffer(expectedBytes, new BufferPool());
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
  const buffer = new BodyBuffer(5, new BufferPool());
  buffer.append(piece);
  expect(buffer.bytes().buffer).toBe(piece.buffer);
});

test('pieces of one byte take little more memory than they are long', () => {
  const buffer = new BodyBuffer(0, new BufferPool());
  for (let i = 0; i < 1_000_000; i++) buffer.append(Buffer.from([i & 0xff]));
  expect(buffer.bytes().byteLength).toBe(1_000_000);
  expect(buffer.bytes().buffer.byteLength).toBeLessThan(2_200_000);
});

test('an announced length is set aside at once, rounded up', () => {
  const buffer = new BodyBuffer(100_000, new BufferPool());
  buffer.append(Buffer.from('a'));
  buffer.append(Buffer.from('b'));
  expect(buffer.bytes().buffer.byteLength).toBe(131_072);
});

test('gives its memory to the next body, and only when nobody reads it any more', () => {
  const pool = new BufferPool();
  const fill = (byte: number) => {
    const buffer = new BodyBuffer(100_000, pool);
    for (let piece = 0; piece < 3; piece++) buffer.append(Buffer.alloc(40_000, byte));
    return buffer;
  };
  const [first, second] = [fill(1), fill(2)];
  expect(first.bytes()).toEqual(Buffer.alloc(120_000, 1));
  expect(second.bytes()).toEqual(Buffer.alloc(120_000, 2));
  const { buffer: memory } = first.bytes();
  first.release();
  first.release();
  const [third, fourth] = [fill(3), fill(4)];
  expect(new Set([third, fourth].map((body) => body.bytes().buffer)).has(memory)).toBe(true);
  expect(third.bytes()).toEqual(Buffer.alloc(120_000, 3));
  expect(fourth.bytes()).toEqual(Buffer.alloc(120_000, 4));
  expect(second.bytes()).toEqual(Buffer.alloc(120_000, 2));
});
