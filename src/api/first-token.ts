import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { errorCode } from '../core/errors.js';
import { FIRST_ACCOUNT_ID, type TokenStore } from '../storage/account-store.js';
import { hashOf, isWholeSecret, newSecret } from './authenticator.js';

/** Where the first start leaves its token: not in the log, which others read and keep. */
export const FIRST_TOKEN_FILE = 'admin-token';

/**
 * Makes sure that a state without tokens gets one with all permissions, in a file of the data folder that only this user
 * can read. An existing token in the file is used: from a start that was killed, or of a lost state
 * whose users still have it. The file may be removed once the token is stored elsewhere.
 * @returns the file's path; `null` if the state has, or had, a token.
 * @throws StoreError; an error of the file system; an Error if the file has other contents, which are not changed.
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
 * Removes the file with the first token if it contains the token with this hash: once revoked it is useless, and must not
 * return with a rebuilt state.
 * @returns its path; `null` if it contains another one, or none.
 */
export function removeFirstToken(dataFolder: string, hash: string): string | null {
  const path = join(dataFolder, FIRST_TOKEN_FILE);
  const secret = readText(path);
  if (secret === null || hashOf(secret).toString('hex') !== hash) return null;
  rmSync(path, { force: true });
  return path;
}

/** @returns `null` if there is none. */
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
