import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { PassOn } from '../../../src/files/pipe.js';

/** Takes what is written when it is told to. */
class Slow extends Writable {
  readonly taken: string[] = [];
  private next: (() => void) | undefined;
  constructor() {
    super({ highWaterMark: 4 });
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.taken.push(chunk.toString());
    this.next = done;
  }
  take(): void {
    this.next?.();
  }
}

test('who writes waits until there is room, and until the end for everything', async () => {
  const stream = new Slow();
  const output = new PassOn(stream);
  await output.write(Buffer.from('a'));
  const second = output.write(Buffer.from('more than there is room for'));
  stream.take();
  stream.take();
  await second;
  expect(stream.taken).toEqual(['a', 'more than there is room for']);
  expect(stream.listenerCount('drain') + stream.listenerCount('error')).toBe(2);
});

test('nobody waits for a reader that has gone', async () => {
  const stream = new Slow();
  const output = new PassOn(stream);
  const waiting = output.write(Buffer.from('more than there is room for'));
  stream.destroy(new Error('EPIPE'));
  await waiting;
  await output.write(Buffer.from('and more'));
  await output.end();
});
