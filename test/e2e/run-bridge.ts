import { spawn } from 'node:child_process';
import { WAIT_MS } from '../tool/until.js';

/** How a command of the built program ended. */
export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built program to its end, in an environment of its own. */
export function runBridge(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd: string; readonly timeoutMs?: number },
): Promise<Ended> {
  const main = new URL('../../dist/main.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? '', HOME: options.cwd, TMPDIR: options.cwd, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeoutMs ?? 2 * WAIT_MS,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, stdout, stderr }));
  });
}
