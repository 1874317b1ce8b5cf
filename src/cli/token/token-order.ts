import { parseDurationMs } from '../../config/duration.js';
import { nearestName } from '../../config/suggestion.js';
import { PERMISSION_SETS, type PermissionSet, parsePermissionSet } from '../../store/permission-set.js';
import type { NewToken } from '../../store/token-store.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-code.js';

/** A token that is wanted: all of it but its secret, and the account where that is to be made with it. */
export interface TokenOrder extends Omit<NewToken, 'hash' | 'accountId'> {
  /** `null`: the first one, or, where an account is to be made, a new number. */
  readonly accountId: number | null;
  /** The name of the account that is to be made. */
  readonly newAccount: string | null;
}

const MAX_NAME_LENGTH = 200;
/** A hundred years. */
const MAX_EXPIRES_MS = 36_525 * 86_400_000;

/** Reads the flags of `token create`. @throws CliError */
export function readTokenOrder(flags: Readonly<Record<string, string | undefined>>, nowUnixMs: number): TokenOrder {
  const name = readName('--name', flags.name);
  if (name === null) {
    throw new CliError(EXIT.usage, '--name is missing: say what the token is for, for example --name airflow');
  }
  return {
    accountId: readAccount(flags.account),
    newAccount: readName('--new-account', flags['new-account']),
    name,
    userName: readName('--user', flags.user),
    permission: readPermission(flags.permission),
    createdUnixMs: nowUnixMs,
    expiresUnixMs: readExpiry(flags.expires, nowUnixMs),
  };
}

function readName(flag: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  const name = text.trim();
  // Control characters would let a name write into the terminal of whoever lists it.
  if (name !== '' && name.length <= MAX_NAME_LENGTH && !/\p{C}/u.test(name)) return name;
  throw new CliError(EXIT.usage, `${flag}: give 1 to ${MAX_NAME_LENGTH} letters on one line`);
}

function readPermission(text: string | undefined): PermissionSet {
  const sets = PERMISSION_SETS.join(', ');
  if (text === undefined) throw new CliError(EXIT.usage, `--permission is missing: choose one of ${sets}`);
  const permission = parsePermissionSet(text);
  if (permission !== undefined) return permission;
  const meant = nearestName(text, PERMISSION_SETS);
  const hint = meant === undefined ? `choose one of ${sets}` : `did you mean ${meant}?`;
  throw new CliError(EXIT.usage, `--permission: ${JSON.stringify(text)} is no permission set; ${hint}`);
}

function readExpiry(text: string | undefined, nowUnixMs: number): number | null {
  if (text === undefined || text.trim().toLowerCase() === 'never') return null;
  const durationMs = parseDurationMs(text, MAX_EXPIRES_MS);
  if (durationMs !== undefined && durationMs > 0) return nowUnixMs + durationMs;
  throw new CliError(EXIT.usage, `--expires: ${JSON.stringify(text)} is not a time such as 12h or 90d`);
}

function readAccount(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--account: ${JSON.stringify(text)} is not the number of an account`);
}
