import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { startBoundedThread } from '../../../src/core/thread.js';

const MAX_HEAP_MIB = 64;
/** Looks at the thread for the first time before it runs, as where processors are short. */
const EAGER: Clock = { ...systemClock, after: (_delayMs, action) => systemClock.after(0, action) };

describe('a bounded thread', () => {
  let thread: Worker | undefined;
  afterEach(() => thread?.terminate());

  const start = (program: string) => {
    const entry = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
    thread = startBoundedThread(entry, { workerData: null, maxHeapMib: MAX_HEAP_MIB, execArgv: [] }, EAGER);
    return thread;
  };

  it('is ended with an error when its objects take too much', async () => {
    const [error] = await once(start('const all = []; for (;;) all.push(new Array(1000).fill(1))'), 'error');
    expect(String(error)).toContain('memory');
  });

  // Where Node cannot measure a thread, V8 ends the process for a table that finds no room.
  it.runIf('getHeapStatistics' in Worker.prototype)('is ended when it is one table that takes too much', async () => {
    const [error] = await once(start('const all = new Map(); for (let i = 0; ; i++) all.set(i, { i })'), 'error');
    expect(String(error)).toContain(`${MAX_HEAP_MIB} MiB`);
  });

  it('ends by itself when it is done', async () => {
    expect(await once(start('0'), 'exit')).toEqual([0]);
  });
});
