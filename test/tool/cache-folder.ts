import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Where what is built or installed for tests stays between runs: `RUN_BRIDGE_CACHE`, else `run-bridge` in the user's
 * cache folder.
 */
export function cacheFolder(): string {
  const base = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  return process.env.RUN_BRIDGE_CACHE ?? join(base, 'run-bridge');
}

/** Runs a command that builds or installs into the cache; those of test files that run at the same time, one after the other. */
export function installIntoCache(command: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  mkdirSync(cacheFolder(), { recursive: true });
  execFileSync('flock', [join(cacheFolder(), 'install.lock'), ...command], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
