import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { STATE_FILE } from '../app/limits.js';
import type { Configuration } from '../config/configuration.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { counted } from '../core/text.js';
import { backupSqliteState } from '../storage/backup-sqlite-state.js';
import { type Copied, copyDataFolder } from '../storage/copy-data-folder.js';
import { StoreError } from '../storage/store-error.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { isShared } from './refuse-shared.js';
import { resolveForCommand } from './resolve-for-command.js';

/** What `run-bridge backup` does: what it writes has its name only when it is whole. @throws CliError, ConfigurationError */
export async function backUp(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  const folder = configuration['data-dir'];
  const target = resolve(context.workingDir, operands[0] ?? '');
  check(folder, target);
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
    throw failed(error, target);
  }
}

/** @throws CliError */
function check(folder: string, target: string): void {
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

function failed(error: unknown, target: string): CliError {
  const code = errorCode(error);
  const isFull = code === 'ENOSPC' || (error instanceof StoreError && error.code === 'full');
  const reason = isFull ? 'the disk is full; free some space' : reasonOf(error);
  return new CliError(EXIT.failed, `${target}: the backup could not be written; its files were removed: ${reason}`, {
    cause: error,
  });
}

/** What was copied where, for people: `/backups/today: state.db, 2 runs in 9 files, 1.5 MB`. */
export function copiedText(folder: string, hasState: boolean, { runCount, fileCount, byteCount }: Copied): string {
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
