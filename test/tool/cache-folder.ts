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
