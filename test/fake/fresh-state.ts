import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lazy } from '../../src/core/lazy.js';
import { NO_OBSERVER } from '../../src/storage/execution-status.js';
import { openSqliteState } from '../../src/storage/sqlite-state.js';
import type { State } from '../../src/storage/state.js';

/** An empty state's file. Making its tables syncs the disk over and over, 0.1 s each time, so they are made once a process. */
const emptyState = lazy(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-state-'));
  const path = join(folder, 'state.db');
  await (await openSqliteState(path)).close();
  const bytes = readFileSync(path);
  rmSync(folder, { recursive: true });
  return bytes;
});

/** Opens the state in a SQLite file, with all its tables; one that is not there yet begins as a copy of an empty one. */
export async function openFreshState(path: string, observer = NO_OBSERVER): Promise<State> {
  if (!existsSync(path)) writeFileSync(path, await emptyState.get());
  return openSqliteState(path, undefined, observer);
}
