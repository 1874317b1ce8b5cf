import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type LineRange, LineSplitter, LineWindow, linesOf, readLines, textOf } from '../../../src/core/lines.js';

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
    const splitter = new LineSplitter({ maxLineBytes: 100, offset: 1000, number: 50 });
    splitter.push(bytes('a\nb\n'));
    expect(shown(splitter.take().lines)).toEqual([
      [50, 1000, 'a'],
      [51, 1002, 'b'],
    ]);
  });

  it('keeps 4 KiB of a line beyond the limit, and its place', () => {
    const splitter = new LineSplitter({ maxLineBytes: 10_000 });
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

describe('readLines', () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-lines-'));
  const path = join(folder, 'log.jsonl');
  afterAll(() => rmSync(folder, { recursive: true }));

  async function read(range: LineRange) {
    const found = [];
    for await (const { lines } of readLines(path, range)) found.push(...lines);
    return found.map((line) => [line.offset, line.endOffset, textOf(line)]);
  }

  it('gives the whole lines of a part of a file, blank ones too, and leaves an unfinished one', async () => {
    writeFileSync(path, 'one\r\n\ntwo\nhal');
    expect(await read({})).toEqual([
      [0, 5, 'one'],
      [5, 6, ''],
      [6, 10, 'two'],
    ]);
    expect(await read({ fromOffset: 5, toOffset: 8 })).toEqual([[5, 6, '']]);
  });

  it('gives a line of several reads whole', async () => {
    const long = 'x'.repeat(3 * 2 ** 20);
    writeFileSync(path, `${long}\nafter\n`);
    expect(await read({})).toEqual([
      [0, long.length + 1, long],
      [long.length + 1, long.length + 7, 'after'],
    ]);
  });

  it('gives nothing of a file that is not there', async () => {
    for await (const { lines } of readLines(join(folder, 'none'))) expect(lines).toEqual(['nothing']);
  });
});

describe('linesOf', () => {
  it('gives the lines of a stream, however it comes, and the last one without a line break', async () => {
    const stream = Readable.from(['{"a":', '1}\r\n\n{', '}'].map(bytes));
    const texts: string[] = [];
    for await (const line of linesOf(stream)) texts.push(textOf(line));
    expect(texts).toEqual(['{"a":1}', '{}']);
  });
});

describe('LineWindow', () => {
  /** What it finds in a text of which so many bytes are read at a time. */
  function linesIn(text: string, maxLineBytes: number, readBytes: number) {
    const all = bytes(text);
    const window = new LineWindow(maxLineBytes);
    window.moveTo(0);
    const found: unknown[] = [];
    for (let position = 0, isOver = false; !isOver; ) {
      const read = window.fill((room) => all.copy(room, 0, position, position + readBytes));
      position += read;
      isOver = read === 0;
      while (window.nextLine() || (isOver && window.lastLine())) {
        const { source, lineStart, lineEnd, lineOffset, isTooLong } = window;
        found.push([lineOffset, isTooLong ? undefined : source.bytes.toString('utf8', lineStart, lineEnd)]);
      }
    }
    return found;
  }

  it('finds the same lines however little is read at a time', () => {
    const text = 'one\n\ntwo ü\nmuch too long for the limit\nlast';
    const found = linesIn(text, 10, 1000);
    expect(found).toEqual([
      [0, 'one'],
      [4, ''],
      [5, 'two ü'],
      [12, undefined],
      [40, 'last'],
    ]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), (size) => {
        expect(linesIn(text, 10, size)).toEqual(found);
      }),
    );
  });
});
