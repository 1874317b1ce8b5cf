import { expect, it } from 'vitest';
import { keepArtifacts } from '../../../../src/source/artifact/keep-artifacts.js';
import { ArtifactError } from '../../../../src/store/artifact/artifact-error.js';
import { parseArtifactPath } from '../../../../src/store/artifact/artifact-path.js';

const PLACE = { runId: 1001, stepIndex: 2, job: 'adhoc' };
const NEVER = new AbortController().signal;

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
  expect(await keepArtifacts(PLACE, found('a', 'b'), sink, NEVER)).toEqual({ left: [], refused: [], reason: null });
  expect(sink.kept).toEqual(['1001/2/a', '1001/2/b']);
});

it('goes on without one that is too large', async () => {
  const sink = sinkWith({ b: new ArtifactError('tooLarge', 'b is too large') });
  const result = await keepArtifacts(PLACE, found('a', 'b', 'c'), sink, NEVER);
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
  const { left, reason } = await keepArtifacts(PLACE, found(...names), sink, NEVER);
  expect(left).toHaveLength(50);
  expect(reason).toBe('nobody answers');
  expect(asked).toBeLessThan(10);
});

it('passes over what the next command has removed meanwhile', async () => {
  const gone = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' });
  expect((await keepArtifacts(PLACE, found('a'), sinkWith({ a: gone }), NEVER)).left).toEqual([]);
});

it('leaves all when time is up', async () => {
  const { left, reason } = await keepArtifacts(PLACE, found('a', 'b'), sinkWith({}), AbortSignal.abort());
  expect(left).toHaveLength(2);
  expect(reason).toBe('there was no time for them');
});
