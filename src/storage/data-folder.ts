import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The file of runs and cursors in the data folder; open as long as the program runs. */
export const STATE_FILE = 'state.db';

/** The file that is locked, in the data folder; open as long as the folder is locked. */
export const LOCK_FILE = 'lock.db';

/** Name of the file with the id, in the data folder; it is there where the state is, or was, in PostgreSQL. */
export const FOLDER_ID_FILE = 'folder-id';

/** The folder in the data folder of one of several processes with record logs and files of runs, in its `runs/`: what it builds, and copies of the bucket. */
export const JOURNAL_FOLDER = 'journal';

/** Returns the id of a data folder in a database, generated on first use. @param random returns a number in [0, 1) */
export function folderIdOf(dataFolder: string, random: () => number): string {
  const path = join(dataFolder, FOLDER_ID_FILE);
  try {
    const id = readFileSync(path, 'utf8').trim();
    if (id !== '') return id;
  } catch {
    // The file does not exist yet.
  }
  const id = Array.from({ length: 4 }, () => Math.floor(random() * 2 ** 32).toString(16)).join('-');
  // Renamed when it is complete, so that a kill cannot leave half of it.
  writeFileSync(`${path}.partial`, `${id}\n`, { flush: true });
  renameSync(`${path}.partial`, path);
  return id;
}

/** Another process serves the data folder. The message names it and says what to do; the program ends with exit code 2. */
export class DataFolderInUseError extends Error {
  override readonly name = 'DataFolderInUseError';
  constructor(
    readonly folder: string,
    /** `undefined` if the other process has not written it. */
    readonly holder: LockHolder | undefined,
    options?: ErrorOptions,
  ) {
    super(`${folder} is in use by ${describe(holder)}; stop it or pass another --data-dir`, options);
  }
}

function describe(holder: LockHolder | undefined): string {
  if (holder === undefined) return 'another process';
  const address = holder.address === null ? '' : ` (listening on ${holder.address})`;
  return `process ${holder.pid} since ${holder.since}${address}`;
}

/** The process that has a data folder. */
export interface LockHolder {
  /** Process id. */
  readonly pid: number;
  /** When it locked the folder, in ISO 8601. */
  readonly since: string;
  /** Where it listens; `null` until it does. */
  readonly address: string | null;
}

/** Returns the text file beside a folder's lock that names the process. */
export function holderPath(folder: string): string {
  return join(folder, 'lock.json');
}

/** Returns the process that has a data folder, according to the file; it may have died since. */
export function readHolder(folder: string): LockHolder | undefined {
  try {
    return parseHolder(JSON.parse(readFileSync(holderPath(folder), 'utf8')));
  } catch {
    // Not written yet, or cut off: the message does without.
    return undefined;
  }
}

/** By hand: three fields are no reason for every start to load a schema library. */
function parseHolder(value: unknown): LockHolder | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('pid' in value && 'since' in value && 'address' in value)) return undefined;
  const { pid, since, address } = value;
  if (typeof pid !== 'number' || typeof since !== 'string') return undefined;
  return address === null || typeof address === 'string' ? { pid, since, address } : undefined;
}
