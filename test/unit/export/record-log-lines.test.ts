import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LogStretch, RecordLogLines } from '../../../src/export/record-log-lines.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { traceIdOf } from '../../fake/memory-record-log.js';

const RUN = traceIdOf(1);

let folder: string;
let lines: RecordLogLines;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-lines-'));
  lines = new RecordLogLines(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

async function write(log: string, resources = ''): Promise<void> {
  await mkdir(join(folder, 'runs', RUN), { recursive: true });
  await writeFile(join(folder, 'runs', RUN, 'telemetry.jsonl'), log);
  await writeFile(join(folder, 'runs', RUN, 'resources.jsonl'), resources);
}

/** A stretch of a log; what comes live is read in another way, and is the same. */
const stretch = (fromOffset: number, toOffset: number, isLive = fromOffset % 2 === 0): LogStretch => ({
  fromOffset,
  toOffset,
  maxBytes: 2 ** 18,
  isLive,
});

async function read(from: number, to: number) {
  return lines.read(RUN, stretch(from, to), (pieces) =>
    pieces.map(({ resource, offset, lines: bytes }) => [
      resource.attributes['service.name'],
      offset,
      Buffer.from(bytes).toString(),
    ]),
  );
}

describe('the lines of a record log on disk', () => {
  it('are those that end between two offsets', async () => {
    await write('one\ntwo\nthree\nfo');
    expect(await read(0, 16)).toEqual([[undefined, 0, 'one\ntwo\nthree\n']]);
    expect(await read(4, 8)).toEqual([[undefined, 4, 'two\n']]);
    expect(await read(4, 10)).toEqual([[undefined, 4, 'two\n']]);
  });

  it('are none behind the end, in a torn line, and of a run that is not there', async () => {
    await write('one\ntw');
    expect(await read(4, 100)).toEqual([]);
    expect(await read(6, 100)).toEqual([]);
    expect(await lines.read(traceIdOf(2), stretch(0, 100), (pieces) => pieces.length)).toBe(0);
  });

  it('come in a piece for each resource', async () => {
    const named = (id: number, name: string) =>
      `${JSON.stringify({ id, resource: { attributes: { 'service.name': name }, scope: { name: '', version: '' } } })}\n`;
    const index = `${named(1, 'a')}{"offset":0,"id":1}\n${named(2, 'b')}{"offset":4,"id":2}\n{"offset":8,"id":1}\n`;
    await write('one\ntwo\nthree\n', index);
    expect(await read(0, 14)).toEqual([
      ['a', 0, 'one\n'],
      ['b', 4, 'two\n'],
      ['a', 8, 'three\n'],
    ]);
    expect(await read(4, 8)).toEqual([['b', 4, 'two\n']]);
  });

  it('have the resources that are there when they are read', async () => {
    const named = (id: number, name: string) =>
      `${JSON.stringify({ id, resource: { attributes: { 'service.name': name }, scope: { name: '', version: '' } } })}\n`;
    const first = `${named(1, 'a')}{"offset":0,"id":1}\n`;
    await write('one\ntwo\n', first);
    expect(await read(0, 8)).toEqual([['a', 0, 'one\ntwo\n']]);
    await write('one\ntwo\n', `${first}${named(2, 'b')}{"offset":4,"id":2}\n`);
    expect(await read(4, 8)).toEqual([['b', 4, 'two\n']]);
    await rm(join(folder, 'runs', RUN, 'resources.jsonl'));
    expect(await read(4, 8)).toEqual([[undefined, 4, 'two\n']]);
    await write('one\ntwo\n', `${named(1, 'c')}{"offset":0,"id":1}\n`);
    expect(await read(4, 8)).toEqual([['c', 4, 'two\n']]);
  });

  it("of many runs are each that run's", async () => {
    const named = (name: string) =>
      `${JSON.stringify({ id: 1, resource: { attributes: { 'service.name': name }, scope: { name: '', version: '' } } })}\n{"offset":0,"id":1}\n`;
    const runs = Array.from({ length: 100 }, (_, number) => traceIdOf(number + 1));
    for (const run of runs) {
      await mkdir(join(folder, 'runs', run), { recursive: true });
      await writeFile(join(folder, 'runs', run, 'telemetry.jsonl'), 'one\n');
      await writeFile(join(folder, 'runs', run, 'resources.jsonl'), named(run));
    }
    const nameOf = (run: TraceId) =>
      lines.read(run, stretch(0, 4), ([piece]) => piece?.resource.attributes['service.name']);
    for (const run of [...runs, ...runs]) expect(await nameOf(run)).toBe(run);
  });

  it.each([true, false])('are as many as are asked for, but never less than one line (live: %s)', async (isLive) => {
    const long = `${'x'.repeat(5 * 2 ** 20)}\n`;
    const short = `${'y'.repeat(99)}\n`;
    await write(`${long}${short.repeat(20_000)}`);
    const lengthFrom = (offset: number) =>
      lines.read(RUN, stretch(offset, 100 * 2 ** 20, isLive), ([piece]) => piece?.lines.length ?? 0);
    expect(await lengthFrom(0)).toBeGreaterThanOrEqual(long.length);
    expect(await lengthFrom(long.length)).toBeLessThanOrEqual(2 ** 18);
    expect(await lengthFrom(long.length)).toBeGreaterThan(2 ** 18 - 200);
  });

  it('are lent to each reader apart, however many read at once', async () => {
    const log = Array.from({ length: 20_000 }, (_, number) => `line ${number}\n`).join('');
    await write(log);
    const offsets = [0, log.indexOf('line 7'), log.indexOf('line 5000'), 0, log.indexOf('line 19999')];
    const read = (from: number) =>
      lines.read(RUN, stretch(from, log.length), ([piece]) => Buffer.from(piece?.lines ?? []).toString());
    const texts = await Promise.all(offsets.map(read));
    expect(texts).toEqual(offsets.map((offset) => log.slice(offset)));
    expect(await read(0)).toBe(log);
  });
});
