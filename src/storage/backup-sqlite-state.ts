import { z } from 'zod';
import { LibsqlDatabase } from './libsql-database.js';
import { openSqliteState } from './open-sqlite-state.js';
import { StoreError } from './store-error.js';

/** How long a copy waits for another program that holds the database, in milliseconds. */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Writes a snapshot of the state to a new file, while others may go on changing it.
 * @throws StoreError
 */
export function backupSqliteState(path: string, to: string): void {
  const database = new LibsqlDatabase(path, BUSY_TIMEOUT_MS);
  try {
    database.prepare('VACUUM INTO ?').run([to]);
  } finally {
    database.release();
  }
}

/** A run in the state, and the length of its record log when that was saved. */
export interface NotedLog {
  readonly traceId: string;
  readonly logBytes: number;
}

/**
 * Checks every page and index of a copied state, and migrates its schema.
 * @returns its runs
 * @throws StoreError if it is damaged or from a newer version
 */
export async function checkSqliteState(path: string): Promise<readonly NotedLog[]> {
  await (await openSqliteState(path)).close();
  const database = new LibsqlDatabase(path, BUSY_TIMEOUT_MS);
  try {
    const checked = CHECKED.parse(database.prepare('PRAGMA integrity_check(1)').all([]));
    const fault = checked.find(({ integrity_check }) => integrity_check !== 'ok');
    if (fault !== undefined) throw new StoreError('corrupt', `${path}: ${fault.integrity_check}`);
    const rows = RUNS.parse(database.prepare('select trace_id, log_bytes from runs').all([]));
    return rows.map(({ trace_id, log_bytes }) => ({ traceId: trace_id, logBytes: log_bytes }));
  } finally {
    database.close();
  }
}

const CHECKED = z.array(z.object({ integrity_check: z.string() }));
const RUNS = z.array(z.object({ trace_id: z.string(), log_bytes: z.number() }));
