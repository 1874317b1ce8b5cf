import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../src/files/line-splitter.js';

const bytes = (text: string) => Buffer.from(text);
const shown = (lines: readonly { number: number; offset: number; bytes: Uint8Array }[]) =>
  lines.map((line) => [line.number, line.offset, Buffer.from(line.bytes).toString()]);

describe('LineSplitter', () => {
  it('tells each line with its number and place, wherever the pieces fall', () => {
    const text = 'one\r\n\n  \ntwo ü\nthree';
    fc.assert(
      fc.property(fc.array(fc.nat(bytes(text).length), { maxLength: 6 }), (cuts) => {
        const splitter = new LineSplitter();
        const places = [0, ...cuts.sort((a, b) => a - b), bytes(text).length];
        for (const [index, place] of places.entries()) splitter.push(bytes(text).subarray(place, places[index + 1]));
        splitter.end();
        expect(shown(splitter.take().lines)).toEqual([
          [1, 0, 'one'],
          [4, 9, 'two ü'],
          [5, 16, 'three'],
        ]);
      }),
    );
  });

  it('holds a line back until it is complete, and says where it begins', () => {
    const splitter = new LineSplitter();
    splitter.push(bytes('whole\nhal'));
    expect(shown(splitter.take().lines)).toEqual([[1, 0, 'whole']]);
    expect([splitter.lineNumber, splitter.lineOffset, splitter.restBytes]).toEqual([2, 6, 3]);
    splitter.push(bytes('f\n'));
    expect(shown(splitter.take().lines)).toEqual([[2, 6, 'half']]);
  });

  it('goes on counting from a place in the middle', () => {
    const splitter = new LineSplitter(100, 1000, 50);
    splitter.push(bytes('a\nb\n'));
    expect(shown(splitter.take().lines)).toEqual([
      [50, 1000, 'a'],
      [51, 1002, 'b'],
    ]);
  });

  it('keeps 4 KiB of a line beyond the limit, and its place', () => {
    const splitter = new LineSplitter(10_000);
    splitter.push(bytes('short\n'));
    for (let piece = 0; piece < 30; piece++) splitter.push(bytes('x'.repeat(1000)));
    splitter.push(bytes('\nafter\n'));
    const { lines, tooLong } = splitter.take();
    expect(shown(lines)).toEqual([
      [1, 0, 'short'],
      [3, 30_007, 'after'],
    ]);
    expect(tooLong).toMatchObject([{ number: 2, offset: 6 }]);
    expect(tooLong[0]?.head.length).toBe(4096);
  });
});
