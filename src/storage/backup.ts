import { constants } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../core/errors.js';
import { namesIn } from '../core/folders.js';
import { wholeLineBytes } from '../core/lines.js';
import { LibsqlDatabase, openSqliteState } from './sqlite-state.js';
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

/** What was copied. */
export interface Copied {
  readonly runCount: number;
  readonly fileCount: number;
  readonly byteCount: number;
}

/** The record log comes before what describes its parts: of the two, the description may be ahead. */
const FIRST = 'telemetry.jsonl';
/** Of the data folder itself: the state, which is copied in another way, locks, downloads that are only read, and copies of what is in a bucket. */
const NOT_COPIED = /^(state\.db.*|lock\.db.*|lock\.json|pull|journal)$/;
const UNFINISHED = /\.partial$/;

/**
 * Copies the files of a data folder, except its state, while a server may write there: files of lines up to their last complete
 * line, everything else appears by renaming. Files that disappear meanwhile are skipped.
 * @param to an existing folder
 * @throws errors of the file system
 */
export async function copyDataFolder(from: string, to: string): Promise<Copied> {
  const total = { runCount: 0, fileCount: 0, byteCount: 0 };
  await copyFolder(from, to, total, (name) => !NOT_COPIED.test(name));
  const runs = await namesIn(join(to, 'runs'));
  return { ...total, runCount: runs.length };
}

async function copyFolder(
  from: string,
  to: string,
  total: { fileCount: number; byteCount: number },
  isWanted: (name: string) => boolean = () => true,
): Promise<void> {
  const names = (await namesIn(from)).filter((name) => isWanted(name) && !UNFINISHED.test(name));
  names.sort((one, other) => Number(other === FIRST) - Number(one === FIRST) || one.localeCompare(other));
  for (const name of names) {
    const [source, target] = [join(from, name), join(to, name)];
    try {
      const found = await lstat(source);
      if (found.isDirectory()) {
        await mkdir(target, { mode: 0o700 });
        await copyFolder(source, target, total);
      } else if (found.isFile()) {
        total.byteCount += await copyOne(source, target);
        total.fileCount += 1;
      }
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error;
    }
  }
}

async function copyOne(source: string, target: string): Promise<number> {
  if (source.endsWith('.jsonl')) return await copyWholeLines(source, target);
  await copyFile(source, target, constants.COPYFILE_FICLONE);
  await chmod(target, 0o600);
  return (await lstat(target)).size;
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * Copies a file of lines as long as it is now, up to its last line break: what is being written behind that is not whole.
 * @returns how many bytes were copied
 * @throws errors of the file system
 */
export async function copyWholeLines(from: string, to: string): Promise<number> {
  const source = await open(from, 'r');
  try {
    const { size } = await source.stat();
    const target = await open(to, 'w', 0o600);
    try {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(size, 1)));
      let copied = 0;
      let whole = 0;
      while (copied < size) {
        const { bytesRead } = await source.read(chunk, 0, Math.min(chunk.length, size - copied), copied);
        if (bytesRead === 0) break;
        const part = chunk.subarray(0, bytesRead);
        await target.writeFile(part);
        const wholeBytes = wholeLineBytes(part);
        if (wholeBytes > 0) whole = copied + wholeBytes;
        copied += bytesRead;
      }
      await target.truncate(whole);
      return whole;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}
