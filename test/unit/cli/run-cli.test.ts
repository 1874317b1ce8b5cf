import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ProcessContext } from '../../../src/cli/process-context.js';
import { runCli } from '../../../src/cli/run-cli.js';
import { systemClock } from '../../../src/component/clock.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sample = join(root, 'test/fixture/samples/build-clean/otel.jsonl');
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-unit-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

async function run(args: readonly string[], stop: AbortSignal) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const context: ProcessContext = {
    environment: {},
    workingDir: dir,
    homeDir: dir,
    tempDir: dir,
    pid: 1,
    nodeVersion: '20.0.0',
    packageDir: root,
    stdin: new PassThrough().end(),
    isStdinTerminal: false,
    stdout,
    stderr,
    isStderrTerminal: false,
    ownHosts: [],
    clock: systemClock,
    random: () => 0.5,
    stop,
    takeOver() {},
  };
  const exitCode = await runCli(args, context);
  return { exitCode, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
}

describe('a command that is told to stop', () => {
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
    expect(stderr.split('\n').slice(0, 5).at(-1)).toMatch(/^now run/);
  });
});
