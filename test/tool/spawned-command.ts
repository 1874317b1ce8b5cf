import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** A command of the built program that is running, in an environment of its own. */
export class SpawnedCommand {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  stderr = '';
  private readonly output: Buffer[] = [];
  private readonly closed: Promise<number | null>;

  constructor(
    args: readonly string[],
    options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
  ) {
    const main = new URL('../../dist/main.js', import.meta.url).pathname;
    const { cwd, env } = options;
    this.child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: cwd, TMPDIR: cwd, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.child.stdout.on('data', (chunk: Buffer) => this.output.push(chunk));
    this.child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    // A program that has ended reads no more.
    this.child.stdin.on('error', () => {});
    this.closed = new Promise((resolve) => this.child.on('close', (exitCode) => resolve(exitCode)));
  }

  get stdout(): Buffer {
    return Buffer.concat(this.output);
  }

  /** The exit code, `null` after a signal. */
  ended(): Promise<number | null> {
    return this.closed;
  }

  /** Sends a signal and waits for the end. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.child.kill(signal);
    return this.closed;
  }
}
