import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../component/clock.js';
import { FIRST_ACCOUNT_ID } from '../store/account-store.js';
import type { TokenStore } from '../store/token-store.js';
import { hashOf, newSecret } from './token-secret.js';

/** Where the first start leaves its token: not in the log, which others read and keep. */
const FILE = 'admin-token';

/**
 * Makes a token for everything where there has never been one, and leaves it in a file of the data folder that this user
 * alone can read. The file may be removed once its token is kept elsewhere.
 * @returns the file's path; `null` where there has been a token.
 * @throws StoreError; an Error of the file system.
 */
export async function makeFirstToken(tokens: TokenStore, dataFolder: string, clock: Clock): Promise<string | null> {
  if (!(await tokens.isEmpty())) return null;
  const path = join(dataFolder, FILE);
  const secret = newSecret();
  // One of a state that is gone; a file that is there would keep its mode.
  rmSync(path, { force: true });
  writeFileSync(path, `${secret}\n`, { mode: 0o600, flag: 'wx' });
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
  rmSync(path, { force: true });
  return null;
}
