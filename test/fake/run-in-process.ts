import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ProcessContext } from '../../src/cli/command.js';
import { runCli } from '../../src/commands/run-cli.js';
import { systemClock } from '../../src/core/clock.js';
import { bufferedText } from './buffered-text.js';

/** What differs from an empty environment, in which nobody stops anything. */
export interface InProcessOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly stop?: AbortSignal;
  /** Gets what it writes there while it runs; then the answer has none of it. */
  readonly stderr?: PassThrough;
}

/** Runs a command line in this process, at home and at work in `dir`. @returns its exit code, and what it wrote. */
export async function runInProcess(args: readonly string[], dir: string, options: InProcessOptions = {}) {
  const stdout = new PassThrough();
  const stderr = options.stderr ?? new PassThrough();
  const exitCode = await runCli(args, { ...contextIn(dir, options), stdout, stderr });
  return { exitCode, stdout: bufferedText(stdout), stderr: bufferedText(stderr) };
}

/** What a command sees that runs at home and at work in `dir`. */
export function contextIn(dir: string, options: InProcessOptions = {}): ProcessContext {
  const { environment = {}, stop = new AbortController().signal, stderr = new PassThrough() } = options;
  return {
    environment,
    workingDir: dir,
    homeDir: dir,
    tempDir: dir,
    pid: 1,
    nodeVersion: '20.0.0',
    nodePath: process.execPath,
    packageDir: fileURLToPath(new URL('../../', import.meta.url)),
    stdin: new PassThrough().end(),
    isStdinTerminal: false,
    stdout: new PassThrough(),
    stdoutColumns: null,
    stderr,
    isStderrTerminal: false,
    ownHosts: [],
    clock: systemClock,
    random: () => 0.5,
    stop,
    takeOver: () => () => {},
  };
}
