import { execFile, execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  openSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { JsonlTail, type JsonlTailOptions, type TailChunk } from '../../../src/files/jsonl-tail.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { untilTurned } from '../../tool/until.js';
import { temporaryFolder } from './reading.js';

const folder = temporaryFolder('jsonl-tail');
let fileCount = 0;
const newPath = () => folder.path(`tail-${fileCount++}.jsonl`);

/** A tail that is being read, and what it gave. */
class Reading {
  readonly chunks: TailChunk[] = [];
  readonly tail: JsonlTail;
  private readonly stop = new AbortController();
  private readonly ended: Promise<void>;

  constructor(path: string, options: JsonlTailOptions = {}, clock: Clock = systemClock) {
    this.tail = new JsonlTail(path, options, clock);
    this.ended = this.read();
  }

  get texts(): string[] {
    return this.chunks.flatMap(({ lines }) => lines.map((line) => Buffer.from(line.bytes).toString()));
  }

  get rejects(): string[] {
    return this.chunks.flatMap(({ rejects }) => rejects.map(({ place, reason }) => `${place}: ${reason}`));
  }

  get position() {
    return this.chunks.findLast(({ position }) => position !== undefined)?.position;
  }

  async finish(): Promise<void> {
    this.tail.finish();
    await this.ended;
  }

  async abort(): Promise<void> {
    this.stop.abort();
    await this.ended;
  }

  private async read(): Promise<void> {
    for await (const chunk of this.tail.chunks(this.stop.signal)) this.chunks.push(chunk);
  }
}

const readings: Reading[] = [];
function reading(...args: ConstructorParameters<typeof Reading>): Reading {
  const one = new Reading(...args);
  readings.push(one);
  return one;
}
afterEach(async () => {
  for (const one of readings.splice(0)) await one.abort();
});

/** Writes a file with one whole line, and stops when that was read. */
async function readUpTo(path: string, text: string): Promise<Reading> {
  writeFileSync(path, text);
  const first = reading(path);
  await untilTurned(() => first.texts.length === 1);
  await first.abort();
  return first;
}

const shell = (command: string) => promisify(execFile)('sh', ['-c', command]);
const long = (name: string) => JSON.stringify({ name, filler: 'x'.repeat(2000) });

describe('JsonlTail', () => {
  it('gives what is there and what is appended, and holds a half line until it is complete', async () => {
    const path = newPath();
    writeFileSync(path, '{"a":1}\n{"b"');
    const tail = reading(path);
    await untilTurned(() => tail.texts.length === 1);
    appendFileSync(path, ':2}\n{"c":3}\n');
    await untilTurned(() => tail.texts.length === 3);
    expect(tail.texts).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
    expect(tail.chunks.flatMap(({ lines }) => lines.map(({ number, offset }) => [number, offset]))).toEqual([
      [1, 0],
      [2, 8],
      [3, 16],
    ]);
  });

  it('waits for a file, and for its folder, that do not exist yet', async () => {
    const path = folder.path('later/otel.jsonl');
    const tail = reading(path);
    execFileSync('mkdir', [folder.path('later')]);
    writeFileSync(path, '1\n');
    await untilTurned(() => tail.texts.length === 1);
  });

  it('goes on at a position, also with the number of the line', async () => {
    const path = newPath();
    const first = await readUpTo(path, `${long('a')}\n`);
    appendFileSync(path, `${long('b')}\n`);
    const second = reading(path, { from: first.position });
    await untilTurned(() => second.texts.length > 0);
    expect(second.texts).toEqual([long('b')]);
    expect(second.chunks[0]?.lines[0]).toMatchObject({ number: 2, offset: long('a').length + 1 });
  });

  it('goes on behind a first line that is short', async () => {
    const path = newPath();
    const first = await readUpTo(path, '1\n');
    appendFileSync(path, '2\n');
    const second = reading(path, { from: first.position });
    await untilTurned(() => second.texts.length > 0);
    appendFileSync(path, '3\n');
    await untilTurned(() => second.texts.length === 2);
    expect(second.texts).toEqual(['2', '3']);
  });

  it('leaves a half line to who goes on when it is aborted', async () => {
    const path = newPath();
    const first = await readUpTo(path, '{"a":1}\n{"b"');
    expect(first.rejects).toEqual([]);
    appendFileSync(path, ':2}\n');
    const second = reading(path, { from: first.position });
    await untilTurned(() => second.texts.length > 0);
    expect(second.texts).toEqual(['{"b":2}']);
  });

  it('begins anew when the file at the position is another one by now', async () => {
    const path = newPath();
    const first = await readUpTo(path, `${long('a')}\n`);
    writeFileSync(path, `${long('other')}\n`);
    const second = reading(path, { from: first.position });
    await untilTurned(() => second.texts.length > 0);
    expect(second.texts).toEqual([long('other')]);
  });

  it('gives at the end a half line that is JSON, and rejects one that is not', async () => {
    const path = newPath();
    writeFileSync(path, '1\n{"whole":true}');
    const whole = reading(path);
    await whole.finish();
    expect([whole.texts, whole.rejects]).toEqual([['1', '{"whole":true}'], []]);
    writeFileSync(path, '1\n{"whole":tr');
    const half = reading(path);
    await half.finish();
    expect([half.texts, half.rejects]).toEqual([['1'], ['line 2: cut off at the end']]);
    expect(half.chunks.at(-1)?.rejects).toMatchObject([{ offset: 2, text: '{"whole":tr' }]);
  });

  it('gives at the end all that was written before it', async () => {
    const path = newPath();
    const tail = reading(path);
    writeFileSync(path, Array.from({ length: 50_000 }, (_, index) => `${index} ${'y'.repeat(50)}\n`).join(''));
    await tail.finish();
    expect(tail.texts).toHaveLength(50_000);
    expect(Math.max(...tail.chunks.map(({ lines }) => lines.length))).toBeLessThan(25_000);
  });

  it('ends on a file that never came', async () => {
    const tail = reading(newPath());
    await tail.finish();
    expect(tail.chunks).toEqual([]);
  });

  it('reads a file that was rotated away on, and the new one', async () => {
    const path = newPath();
    const old = openSync(path, 'a');
    writeSync(old, `${long('a')}\n`);
    const tail = reading(path);
    await untilTurned(() => tail.texts.length === 1);
    renameSync(path, `${path}.1`);
    writeFileSync(path, `${long('new')}\n`);
    await untilTurned(() => tail.texts.length === 2);
    // Who had it open goes on writing there.
    writeSync(old, `${long('late')}\n`);
    await untilTurned(() => tail.texts.length === 3);
    closeSync(old);
    expect(tail.texts).toEqual([long('a'), long('new'), long('late')]);
    expect(tail.position).toMatchObject({ line: 2 });
  });

  it('lets a file go that was rotated away when it is quiet for long, with its half line', async () => {
    const clock = new FakeClock();
    const path = newPath();
    writeFileSync(path, '1\nhal');
    const tail = reading(path, { retiredMs: 1000 }, clock);
    await untilTurned(() => tail.texts.length === 1);
    renameSync(path, `${path}.1`);
    writeFileSync(path, '2\n');
    await untilTurned(() => {
      clock.advance(1);
      // On a busy machine the old file may be given up before the new one is read.
      return tail.rejects.length === 1 && tail.texts.length === 2;
    });
    expect([tail.texts, tail.rejects]).toEqual([['1', '2'], ['line 2: cut off at the end']]);
  });

  it('finds the rest of a file that was rotated away while nobody looked', async () => {
    const path = newPath();
    const first = await readUpTo(path, `${long('a')}\n`);
    appendFileSync(path, `${long('b')}\n`);
    renameSync(path, `${path}.1`);
    writeFileSync(path, `${long('c')}\n`);
    const second = reading(path, { from: first.position });
    await untilTurned(() => second.texts.length === 2);
    expect(second.texts).toEqual([long('b'), long('c')]);
  });

  it('begins anew in a file that was cut off, and says what was lost of a line', async () => {
    const path = newPath();
    writeFileSync(path, '{"a":1}\n{"b"');
    const tail = reading(path);
    await untilTurned(() => tail.texts.length === 1);
    truncateSync(path);
    appendFileSync(path, '{"c":3}\n');
    await untilTurned(() => tail.texts.length === 2);
    expect(tail.texts).toEqual(['{"a":1}', '{"c":3}']);
    expect(tail.rejects).toEqual(['line 2: the file was cut off before the line was complete, after 4 bytes of it']);
  });

  it('notices a file that was written from its beginning and is longer by now', async () => {
    const path = newPath();
    writeFileSync(path, `${long('a')}\n`);
    const tail = reading(path);
    await untilTurned(() => tail.texts.length === 1);
    writeFileSync(path, `${long('b')}\n${long('c')}\n`);
    await untilTurned(() => tail.texts.length === 3);
    expect(tail.texts).toEqual([long('a'), long('b'), long('c')]);
  });

  it('reads on in a file that was removed, and its successor', async () => {
    const path = newPath();
    const file = openSync(path, 'a');
    writeSync(file, '1\n');
    const tail = reading(path);
    await untilTurned(() => tail.texts.length === 1);
    rmSync(path);
    writeSync(file, '2\n');
    await untilTurned(() => tail.texts.length === 2);
    writeFileSync(path, '3\n');
    await untilTurned(() => tail.texts.length === 3);
    closeSync(file);
  });

  it('passes over a line beyond the limit, with its place', async () => {
    const path = newPath();
    writeFileSync(path, `1\n${'x'.repeat(3_000_000)}\n2\n`);
    const tail = reading(path, { maxLineBytes: 1_000_000 });
    await untilTurned(() => tail.texts.length === 2);
    expect(tail.rejects).toEqual(['line 2: longer than 1000000 bytes']);
  });

  it('reads a named pipe from one writer after the other, to its end', async () => {
    const path = newPath();
    await shell(`mkfifo '${path}'`);
    const tail = reading(path);
    // A shell that opens the pipe waits until somebody reads it.
    await shell(`echo 1 > '${path}'; echo 2 > '${path}'`);
    await untilTurned(() => tail.texts.length === 2);
    await shell(`printf '{"a":1}' > '${path}'`);
    await tail.finish();
    expect(tail.texts).toEqual(['1', '2', '{"a":1}']);
  });

  it('looks at the file now and then where the system says nothing', async () => {
    const clock = new FakeClock();
    const path = folder.path('unwatched/tail.jsonl');
    const tail = reading(path, { pollMs: 80, gatherMs: 0 }, clock);
    await untilTurned(() => clock.nextTimerMs === 80);
    // Its folder came after the watch was tried.
    execFileSync('mkdir', [folder.path('unwatched')]);
    writeFileSync(path, '1\n');
    clock.advance(80);
    await untilTurned(() => {
      clock.advance(0);
      return tail.texts.length === 1;
    });
  });

  it('lets lines gather once the file is there, also those that come while others are taken', async () => {
    const clock = new FakeClock();
    const path = newPath();
    const tail = new JsonlTail(path, { isWatched: false, pollMs: 80, gatherMs: 1_000 }, clock);
    const stop = new AbortController();
    const chunks = tail.chunks(stop.signal);
    const first = chunks.next();
    await untilTurned(() => clock.nextTimerMs === 80);
    writeFileSync(path, '1\n');
    clock.advance(80);
    expect((await first).value?.lines).toHaveLength(1);
    appendFileSync(path, '2\n');
    const second = chunks.next();
    await untilTurned(() => clock.nextTimerMs === 80);
    clock.advance(80);
    await untilTurned(() => clock.nextTimerMs === 1_000);
    appendFileSync(path, '3\n');
    clock.advance(1_000);
    expect((await second).value?.lines).toHaveLength(2);
    stop.abort();
    expect(await chunks.next()).toMatchObject({ done: true });
  });

  it('reads on only when it is asked for more', async () => {
    const path = newPath();
    writeFileSync(path, `${'z'.repeat(100)}\n`.repeat(50_000));
    const tail = new JsonlTail(path, {}, systemClock);
    const stop = new AbortController();
    const chunks = tail.chunks(stop.signal);
    const first = await chunks.next();
    appendFileSync(path, '"more"\n');
    expect(first.value?.position?.offset).toBeLessThan(1024 * 1024);
    stop.abort();
    expect(await chunks.next()).toMatchObject({ done: true });
  });

  it('says what is wrong with what it cannot read', async () => {
    const tail = new JsonlTail(folder.path('.'), {}, systemClock);
    await expect(tail.chunks(new AbortController().signal).next()).rejects.toThrow(/cannot read .*EISDIR/);
  });
});
