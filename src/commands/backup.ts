import { existsSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { isShared, readConfiguration, refuseShared } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { namesIn } from '../core/folders.js';
import { counted } from '../core/text.js';
import { LOG_FILE } from '../log/append-file.js';
import { backupSqliteState, type Copied, checkSqliteState, copyDataFolder, type NotedLog } from '../storage/backup.js';
import { LOCK_FILE, STATE_FILE } from '../storage/data-folder.js';
import { DataFolderLock, takeDataFolder } from '../storage/data-folder-lock.js';
import { StoreError } from '../storage/store-error.js';

/** What `run-bridge backup` does: what it writes has its name only when it is whole. @throws CliError, ConfigurationError */
export async function backUp(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const configuration = await readConfiguration(invocation);
  const folder = configuration['data-dir'];
  const target = resolve(context.workingDir, operands[0] ?? '');
  checkFolders(folder, target);
  const partial = `${target}.partial`;
  try {
    await mkdir(dirname(target), { recursive: true });
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { mode: 0o700 });
    // The state first: logs that are ahead of it are read on from where it stands, as after a crash.
    const hasState = existsSync(join(folder, STATE_FILE));
    if (hasState) backupSqliteState(join(folder, STATE_FILE), join(partial, STATE_FILE));
    const copied = await copyDataFolder(folder, partial);
    await rename(partial, target);
    context.stderr.write(`wrote ${copiedText(target, hasState, copied)}\n`);
    const elsewhere = elsewhereOf(configuration);
    if (elsewhere !== null) context.stderr.write(`run-bridge: ${elsewhere}\n`);
    return EXIT.ok;
  } catch (error) {
    await rm(partial, { recursive: true, force: true }).catch(() => undefined);
    throw notBackedUp(error, target);
  }
}

/** @throws CliError */
function checkFolders(folder: string, target: string): void {
  if (!existsSync(folder)) {
    throw new CliError(EXIT.failed, `${folder}: the data folder to back up does not exist; set it with --data-dir`);
  }
  if (existsSync(target)) {
    throw new CliError(EXIT.failed, `${target}: already exists, and a backup never overwrites; name a new folder`);
  }
  if (!relative(folder, target).startsWith('..')) {
    throw new CliError(EXIT.failed, `${target}: is inside the data folder; name a folder elsewhere`);
  }
}

function notBackedUp(error: unknown, target: string): CliError {
  const reason = isFull(error) ? 'the disk is full; free some space' : reasonOf(error);
  return new CliError(EXIT.failed, `${target}: the backup could not be written; its files were removed: ${reason}`, {
    cause: error,
  });
}

/** What was copied where, for people: `/backups/today: state.db, 2 runs in 9 files, 1.5 MB`. */
function copiedText(folder: string, hasState: boolean, { runCount, fileCount, byteCount }: Copied): string {
  const state = hasState ? `${STATE_FILE}, ` : '';
  return `${folder}: ${state}${counted(runCount, 'run')} in ${counted(fileCount, 'file')}, ${(byteCount / 1e6).toFixed(1)} MB`;
}

/** What is not in the backup, and what to do for it. */
function elsewhereOf(configuration: Configuration): string | null {
  if (isShared(configuration)) {
    return 'several processes share the work: their runs are in the bucket and the database and not in this backup: run pg_dump, then copy the bucket';
  }
  if (configuration['database-url'] === 'off') return null;
  return 'the state is in PostgreSQL and not in this backup: run pg_dump before it';
}

/** Where the copy is written, within the data folder: on its file system, also if that is a separate volume. */
const PARTIAL = 'restore.partial';
/** What a data folder may hold that counts as empty: its lock, a restore that was cut off, and what a file system puts there. */
const STILL_EMPTY = new Set([LOCK_FILE, `${LOCK_FILE}-journal`, 'lock.json', PARTIAL, 'lost+found']);
/** The state, and SQLite's files beside it if a server was started on the backup itself. */
const STATE_FILES = [STATE_FILE, `${STATE_FILE}-wal`] as const;

/** What `run-bridge restore` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError */
export async function restore(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const configuration = await readConfiguration(invocation);
  const folder = configuration['data-dir'];
  const backup = resolve(context.workingDir, operands[0] ?? '');
  refuseShared(configuration, 'restore the database from a pg_dump, and the bucket from its copy');
  const isFile = configuration['database-url'] === 'off';
  await checkBackup(backup, folder, isFile);
  const holder = { pid: context.pid, since: new Date(context.clock.nowUnixMs()).toISOString(), address: null };
  // A backup that a server was started on is one that changes.
  const source = existsSync(join(backup, LOCK_FILE)) ? DataFolderLock.acquire(backup, holder) : undefined;
  try {
    const isNew = !existsSync(folder);
    const lock = takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
    let isDone = false;
    try {
      await checkTarget(folder);
      for (const line of await fill(backup, folder)) context.stderr.write(`${line}\n`);
      isDone = true;
    } finally {
      lock.release();
      if (isNew && !isDone) await rm(folder, { recursive: true, force: true });
    }
  } finally {
    source?.release();
  }
  if (!isFile)
    context.stderr.write('run-bridge: the state is in PostgreSQL: restore the pg_dump that belongs to this backup\n');
  return EXIT.ok;
}

/** @throws CliError */
async function checkBackup(backup: string, folder: string, isFile: boolean): Promise<void> {
  const refuse = (reason: string) => new CliError(EXIT.failed, `${backup}: ${reason}`);
  if (!(statSync(backup, { throwIfNoEntry: false })?.isDirectory() ?? false))
    throw refuse('this folder is not a backup');
  if (backup.endsWith('.partial')) throw refuse('this backup is incomplete; use another one');
  const names = await namesIn(backup);
  if (!names.includes(STATE_FILE) && !names.includes('runs')) {
    throw refuse('this is no backup: it has neither state.db nor runs');
  }
  const isWithin = (outer: string, inner: string) => !relative(outer, inner).startsWith('..');
  if (isWithin(backup, folder) || isWithin(folder, backup)) {
    throw refuse('the backup and the data folder lie in one another; --data-dir names another folder');
  }
  if (isFile && !names.includes(STATE_FILE)) {
    throw refuse(
      'this backup has no state.db: its state was in PostgreSQL; restore the pg_dump, and pass --database-url',
    );
  }
  if (!isFile && names.includes(STATE_FILE)) {
    throw refuse('this backup has its state in state.db, and --database-url names another; leave that out');
  }
}

/** @throws CliError */
async function checkTarget(folder: string): Promise<void> {
  const found = (await namesIn(folder)).filter((name) => !STILL_EMPTY.has(name));
  if (found.length === 0) return;
  throw new CliError(
    EXIT.failed,
    `${folder}: is not empty (${found.slice(0, 3).join(', ')}${found.length > 3 ? ' …' : ''}), and restore overwrites nothing; move it away, or name a new folder with --data-dir`,
  );
}

/**
 * Copies the backup beside its target, checks the copy, and only then moves it there.
 * @returns the message
 * @throws CliError
 */
async function fill(backup: string, folder: string): Promise<readonly string[]> {
  const partial = join(folder, PARTIAL);
  try {
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { mode: 0o700 });
    for (const name of STATE_FILES.filter((one) => existsSync(join(backup, one)))) {
      await copyFile(join(backup, name), join(partial, name));
      await chmod(join(partial, name), 0o600);
    }
    const hasState = existsSync(join(partial, STATE_FILE));
    const noted = hasState ? await checkState(join(partial, STATE_FILE)) : [];
    const copied = await copyDataFolder(backup, partial);
    const missing = noted.filter((log) => !isWhole(partial, log));
    // The state last: a folder that contains it is complete.
    const names = (await namesIn(partial)).toSorted(
      (one, other) => Number(one === STATE_FILE) - Number(other === STATE_FILE),
    );
    for (const name of names) await rename(join(partial, name), join(folder, name));
    await rm(partial, { recursive: true });
    return [
      `restored ${copiedText(folder, hasState, copied)}`,
      ...(missing.length === 0 ? [] : [missingLine(missing)]),
    ];
  } catch (error) {
    await rm(partial, { recursive: true, force: true }).catch(() => undefined);
    throw notRestored(error, backup);
  }
}

/** SQLite's files beside the database, which stay until the connection is collected, are removed if they are empty. */
async function checkState(path: string): Promise<readonly NotedLog[]> {
  const noted = await checkSqliteState(path);
  if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size === 0) await rm(`${path}-wal`);
  await rm(`${path}-shm`, { force: true });
  return noted;
}

function isWhole(folder: string, { traceId, logBytes }: NotedLog): boolean {
  const size = statSync(join(folder, 'runs', traceId, LOG_FILE), { throwIfNoEntry: false })?.size ?? 0;
  return size >= logBytes;
}

function missingLine(missing: readonly NotedLog[]): string {
  const some = missing.slice(0, 3).map(({ traceId }) => traceId);
  return `run-bridge: the backup lacks records of ${counted(missing.length, 'run')} that its state knows: ${some.join(', ')}${missing.length > 3 ? ' …' : ''}`;
}

function notRestored(error: unknown, backup: string): CliError {
  if (isFull(error)) {
    return new CliError(EXIT.failed, `${backup}: not restored, since the disk is full; free some space`, {
      cause: error,
    });
  }
  if (error instanceof StoreError && error.code === 'newer') {
    return new CliError(
      EXIT.failed,
      `${backup}: not restored: a newer version of run-bridge wrote it; install that version`,
      { cause: error },
    );
  }
  if (error instanceof StoreError && error.code === 'corrupt') {
    return new CliError(
      EXIT.failed,
      `${backup}: not restored: its state.db is damaged; use another backup, or copy this one without state.db and run run-bridge rebuild on the copy`,
      { cause: error },
    );
  }
  return new CliError(EXIT.failed, `${backup}: not restored: ${reasonOf(error)}`, { cause: error });
}

/** Whether a disk took no more. */
function isFull(error: unknown): boolean {
  return errorCode(error) === 'ENOSPC' || (error instanceof StoreError && error.code === 'full');
}
