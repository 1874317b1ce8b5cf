import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runInProcess } from '../../fake/run-in-process.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sample = join(root, 'test/fixture/samples/build-clean/otel.jsonl');
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-unit-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const run = (args: readonly string[], stop: AbortSignal) => runInProcess(args, dir, { stop });

describe('a command that is asked to stop', () => {
  const stopped = {
    exitCode: 1,
    stdout: '',
    stderr: 'run-bridge: stopped before it was done; what was taken is kept, and doing it again is safe\n',
  };

  test('leaves no half-written file', async () => {
    expect(await run(['convert', sample, join(dir, 'out.parquet')], AbortSignal.abort())).toEqual(stopped);
    expect(readdirSync(dir)).toEqual([]);
  });

  test('lets go of the data folder', async () => {
    const args = ['import', sample, '--data-dir', join(dir, 'data')];
    expect(await run(args, AbortSignal.abort())).toEqual(stopped);
    expect(await run(args, new AbortController().signal)).toMatchObject({ exitCode: 0 });
  });

  test('serves no longer than that', async () => {
    const args = ['serve', '--http', '0', '--grpc', 'off', '--web', '0', '--data-dir', join(dir, 'data')];
    const { exitCode, stderr } = await run(args, AbortSignal.abort());
    expect(exitCode).toBe(0);
    expect(stderr.split('\n').slice(0, 6).at(-1)).toMatch(/^now run/);
  });
});
