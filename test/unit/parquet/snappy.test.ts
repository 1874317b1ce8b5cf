import fc from 'fast-check';
import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { expect, it } from 'vitest';
import { ByteSource } from '../../../src/core/bytes.js';
import { ByteBuffer } from '../../../src/parquet/bytes.js';
import { SnappyCompressor } from '../../../src/parquet/page.js';
import { sampleLines } from './samples.js';

const snappy = new SnappyCompressor();

function compressed(bytes: Buffer): Buffer {
  const out = new ByteBuffer();
  snappy.compress(new ByteSource(bytes), bytes.length, out);
  return Buffer.from(out.content());
}

function expectSame(bytes: Buffer): void {
  const found = Buffer.alloc(bytes.length);
  snappyUncompress(compressed(bytes), found);
  expect(found.equals(bytes)).toBe(true);
}

it('compresses what another reader of Snappy finds whole again, whatever repeats in it', () => {
  const pieces = fc.array(
    fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.constantFrom(1, 2, 3, 17, 70, 5_000)),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(pieces, (parts) => {
      expectSame(Buffer.concat(parts.flatMap(([bytes, times]) => Array.from({ length: times }, () => bytes))));
    }),
    { numRuns: 200 },
  );
});

it('finds what repeats within 64 KiB, in a text of several of these', () => {
  const text = Buffer.from(sampleLines('build-mixed').join('\n'));
  expect(text.length).toBeGreaterThan(3 * 65_536);
  expectSame(text);
  expect(compressed(text).length).toBeLessThan(text.length / 4);
});
