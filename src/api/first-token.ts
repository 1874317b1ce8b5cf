import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { errorCode } from '../core/error-code.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { TokenStore } from '../storage/token-store.js';
import { hashOf, isWholeSecret, newSecret } from './token-secret.js';

/** Where the first start leaves its token: not in the log, which others read and keep. */
export const FIRST_TOKEN_FILE = 'admin-token';

/**
 * Sees to it that there is a token for everything where the state has none, in a file of the data folder that this user
 * alone can read. A token that is in the file already is taken: of a start that was killed, or of a state that is gone,
 * whose users still have it. The file may be removed once its token is kept elsewhere.
 * @returns the file's path; `null` where the state has, or had, a token.
 * @throws StoreError; an Error of the file system; an Error where the file holds something else, which is left as it is.
 */
export async function makeFirstToken(tokens: TokenStore, dataFolder: string, clock: Clock): Promise<string | null> {
  if (!(await tokens.isEmpty())) return null;
  const path = join(dataFolder, FIRST_TOKEN_FILE);
  const found = readSecret(path);
  const secret = found ?? newSecret();
  if (found === null) writeWhole(path, `${secret}\n`);
  const row = await tokens.addFirst({
    accountId: FIRST_ACCOUNT_ID,
    name: 'first start',
    userName: null,
    permission: 'account_admin',
    hash: hashOf(secret).toString('hex'),
    createdUnixMs: clock.nowUnixMs(),
    expiresUnixMs: null,
  });
  if (row !== undefined) return path;
  // Another process on the same database was first.
  if (found === null) rmSync(path, { force: true });
  return null;
}

/**
 * Removes the file with the first token where that is the token with this hash: once revoked it is of no use, and must not
 * come back with a state that is made anew.
 * @returns its path; `null` where it holds another one, or none.
 */
export function removeFirstToken(dataFolder: string, hash: string): string | null {
  const path = join(dataFolder, FIRST_TOKEN_FILE);
  const secret = readText(path);
  if (secret === null || hashOf(secret).toString('hex') !== hash) return null;
  rmSync(path, { force: true });
  return path;
}

/** @returns `null` where there is none. */
function readSecret(path: string): string | null {
  const text = readText(path);
  if (text === null || text === '') return null;
  if (isWholeSecret(text)) return text;
  throw new Error(`${path} contains no token and was not changed: remove it`);
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a file that is whole or not there, whenever the process is killed. */
function writeWhole(path: string, text: string): void {
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  writeFileSync(partial, text, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(partial, path);
}
