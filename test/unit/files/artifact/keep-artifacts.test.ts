import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/core/clock.js';
import { keepArtifacts } from '../../../../src/exec/keep-artifacts.js';
import { ArtifactError, parseArtifactPath } from '../../../../src/storage/artifacts.js';
import { FakeClock } from '../../../fake/fake-clock.js';
import { until } from '../../../tool/until.js';

const PLACE = {
  runId: 1001,
  stepIndex: 2,
  job: 'adhoc',
  reason: null,
  accountId: 10_001,
  jobId: 1,
  projectId: 1,
  environmentId: 1,
};
const NEVER = new AbortController().signal;
const ONCE = { clock: systemClock, signal: NEVER, patienceMs: 0 };

const found = (...names: readonly string[]) =>
  names.flatMap((name) => {
    const path = parseArtifactPath(name);
    return path === undefined ? [] : [{ path, file: `/target/${name}`, sizeBytes: 1 }];
  });

/** A sink that fails for some paths. */
function sinkWith(failures: Readonly<Record<string, Error>>) {
  const kept: string[] = [];
  return {
    kept,
    async put({ runId, stepIndex, path }: { runId: number; stepIndex: number; path: string }) {
      const failure = failures[path];
      if (failure !== undefined) throw failure;
      kept.push(`${runId}/${stepIndex}/${path}`);
    },
  };
}

it('brings each to its step', async () => {
  const sink = sinkWith({});
  expect(await keepArtifacts(PLACE, found('a', 'b'), { ...ONCE, sink: sink })).toEqual({
    left: [],
    refused: [],
    reason: null,
  });
  expect(sink.kept).toEqual(['1001/2/a', '1001/2/b']);
});

it('goes on without one that is too large', async () => {
  const sink = sinkWith({ b: new ArtifactError('tooLarge', 'b is too large') });
  const result = await keepArtifacts(PLACE, found('a', 'b', 'c'), { ...ONCE, sink: sink });
  expect(result).toMatchObject({ left: [], refused: [{ path: 'b' }], reason: 'b is too large' });
  expect(sink.kept).toHaveLength(2);
});

it('does not ask for each of them where nobody answers', async () => {
  const names = Array.from({ length: 50 }, (_, index) => `m${index}.sql`);
  let asked = 0;
  const sink = {
    async put() {
      asked += 1;
      throw new ArtifactError('unavailable', 'nobody answers');
    },
  };
  const { left, reason } = await keepArtifacts(PLACE, found(...names), { ...ONCE, sink: sink });
  expect(left).toHaveLength(50);
  expect(reason).toBe('nobody answers');
  expect(asked).toBeLessThan(10);
});

it('passes over what the next command has removed meanwhile', async () => {
  const gone = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' });
  expect((await keepArtifacts(PLACE, found('a'), { ...ONCE, sink: sinkWith({ a: gone }) })).left).toEqual([]);
});

it('leaves all when it is interrupted', async () => {
  const { left, reason } = await keepArtifacts(PLACE, found('a', 'b'), {
    ...{ ...ONCE, sink: sinkWith({}), signal: AbortSignal.abort() },
  });
  expect(left).toHaveLength(2);
  expect(reason).toBe('the upload was interrupted');
});

it('tries again while its patience lasts, and goes on where it was', async () => {
  const clock = new FakeClock();
  const kept: string[] = [];
  let failures = 5;
  const sink = {
    async put({ path }: { path: string }) {
      if (path === 'b' && failures-- > 0) throw new ArtifactError('unavailable', 'nobody answers');
      kept.push(path);
    },
  };
  const done: number[] = [];
  const options = { clock, signal: NEVER, patienceMs: 60_000, sink, onProgress: (count: number) => done.push(count) };
  const keeping = keepArtifacts(PLACE, found('a', 'b', 'c'), options);
  await until('all are kept', async () => {
    await clock.advance(1_000);
    return kept.length === 3;
  });
  expect(await keeping).toEqual({ left: [], refused: [], reason: null });
  expect(done).toEqual([1, 2, 3]);
});

it('gives up when nothing was kept for as long as its patience', async () => {
  const clock = new FakeClock();
  const sink = sinkWith({ a: new ArtifactError('unavailable', 'nobody answers') });
  const keeping = keepArtifacts(PLACE, found('a'), { clock, signal: NEVER, patienceMs: 10_000, sink });
  let isOver = false;
  void keeping.then(() => {
    isOver = true;
  });
  let waitedMs = 0;
  await until('it gives up', async () => {
    await clock.advance(500);
    waitedMs += 500;
    return isOver;
  });
  expect((await keeping).reason).toBe('nobody answers');
  expect(waitedMs).toBeGreaterThanOrEqual(10_000);
});
