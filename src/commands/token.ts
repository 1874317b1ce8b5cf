import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf, newSecret } from '../api/authenticator.js';
import { removeFirstToken } from '../api/first-token.js';
import { openState } from '../app/open-state.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext, readAccount } from '../cli/command.js';
import { readConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import { parseDurationMs } from '../config/duration.js';
import { nearestName } from '../config/suggestion.js';
import { errorCode } from '../core/errors.js';
import { createFolder } from '../core/folders.js';
import { alignedRows, cleanLine, dateOf } from '../core/text.js';
import {
  type AccountRow,
  type AccountStore,
  FIRST_ACCOUNT_ID,
  type NewToken,
  type TokenRow,
} from '../storage/account-store.js';
import { STATE_FILE } from '../storage/data-folder.js';
import type { State } from '../storage/state.js';
import { PERMISSION_SETS, type PermissionSet, parsePermissionSet } from '../storage/state-tables.js';

/** Flags that every action takes. */
const SETTING_FLAGS: ReadonlySet<string> = new Set(['data-dir', 'database-url', 'config']);
const ACTIONS = ['create', 'list', 'revoke'] as const;

/** What `run-bridge token` does. @throws CliError, ConfigurationError, StoreError */
export async function runTokenCommand(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const action = readAction(operands[0] ?? '');
  const given = Object.keys(invocation.flags).filter((name) => !SETTING_FLAGS.has(name));
  if (action !== 'create' && given.length > 0) {
    throw new CliError(EXIT.usage, `--${given[0]} belongs to run-bridge token create, not to ${action}`);
  }
  if (action !== 'revoke' && operands[1] !== undefined) {
    throw new CliError(EXIT.usage, `run-bridge token ${action} takes no ${JSON.stringify(operands[1])}`);
  }
  const configuration = await readConfiguration(invocation);
  refuseElsewhere(configuration);
  switch (action) {
    case 'create': {
      const order = readTokenOrder(invocation.flags, context.clock.nowUnixMs());
      if (configuration['database-url'] === 'off') makeFolder(configuration['data-dir']);
      return await withState((state) => createToken(state, order, context));
    }
    case 'list':
      return await withKnownState(async ({ tokens }) => {
        const lines = tokenLines(await tokens.list(), context.clock.nowUnixMs());
        for (const line of lines) context.stdout.write(`${line}\n`);
        return EXIT.ok;
      });
    case 'revoke': {
      const id = readId(operands[1]);
      return await withKnownState((state) => revoke(state, id, { invocation, dataFolder: configuration['data-dir'] }));
    }
  }

  /** Nothing is made where nothing was: a mistyped folder stays away. */
  function withKnownState(body: (state: State) => Promise<ExitCode>): Promise<ExitCode> {
    const { 'data-dir': folder, 'database-url': url } = configuration;
    if (url !== 'off' || existsSync(join(folder, STATE_FILE))) return withState(body);
    throw new CliError(EXIT.failed, `${folder} has no tokens: nothing has been stored there; is --data-dir right?`);
  }

  async function withState(body: (state: State) => Promise<ExitCode>): Promise<ExitCode> {
    const state = await openState(configuration, context.clock);
    try {
      return await body(state);
    } finally {
      await state.close();
    }
  }
}

function makeFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    const message = `${folder}: the data folder cannot be created (${code}); pass a folder that this user can write with --data-dir`;
    throw new CliError(EXIT.usage, message, { cause });
  }
}

async function revoke(
  { tokens }: State,
  id: number,
  { invocation, dataFolder }: { readonly invocation: Invocation; readonly dataFolder: string },
): Promise<ExitCode> {
  const { context } = invocation;
  const result = await tokens.revoke(id, context.clock.nowUnixMs());
  if (result.kind === 'unknown')
    throw new CliError(EXIT.failed, `there is no token ${id}; run-bridge token list shows all`);
  const { name } = result.token;
  const what = result.kind === 'revoked' ? 'is revoked: it is rejected within five seconds' : 'was already revoked';
  context.stderr.write(`token ${id} (${cleanLine(name)}) ${what}\n`);
  const removed = removeFirstToken(dataFolder, result.token.hash);
  if (removed !== null) context.stderr.write(`removed ${removed}, which contained it\n`);
  return EXIT.ok;
}

function readAction(text: string): (typeof ACTIONS)[number] {
  const action = ACTIONS.find((one) => one === text);
  if (action !== undefined) return action;
  const meant = nearestName(text, ACTIONS);
  const hint = meant === undefined ? `choose ${ACTIONS.join(', ')}` : `did you mean ${meant}?`;
  throw new CliError(EXIT.usage, `token ${JSON.stringify(text)} is not a known action; ${hint}`);
}

function readId(text: string | undefined): number {
  if (text === undefined)
    throw new CliError(EXIT.usage, 'no token given: give its id, as run-bridge token list shows it');
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, 'a token is revoked by its id, a number that run-bridge token list shows');
}

/** Makes a token and prints it, alone, on standard output. @throws CliError, StoreError */
export async function createToken(
  { accounts, tokens }: Pick<State, 'accounts' | 'tokens'>,
  order: TokenOrder,
  { stdout, stderr }: Pick<ProcessContext, 'stdout' | 'stderr'>,
): Promise<ExitCode> {
  const { newAccount, ...wanted } = order;
  const account = newAccount === null ? await knownAccount(accounts, order) : await makeAccount(accounts, order);
  const secret = newSecret();
  const token = await tokens.add({ ...wanted, accountId: account.id, hash: hashOf(secret).toString('hex') });
  const whose = token.userName === null ? 'a service token' : `a token of ${cleanLine(token.userName)}`;
  const until = token.expiresUnixMs === null ? 'until it is revoked' : `until ${dateOf(token.expiresUnixMs)}`;
  stderr.write(
    `token ${token.id} (${cleanLine(token.name)}): ${whose} with ${token.permission} for account ${token.accountId}, valid ${until}; it is shown only once:\n`,
  );
  stdout.write(`${secret}\n`);
  return EXIT.ok;
}

/** @throws CliError */
async function knownAccount(accounts: AccountStore, { accountId }: TokenOrder): Promise<AccountRow> {
  const id = accountId ?? FIRST_ACCOUNT_ID;
  const account = await accounts.find(id);
  if (account !== undefined) return account;
  const known = (await accounts.list()).map((one) => one.id).join(', ');
  throw new CliError(
    EXIT.failed,
    `--account: there is no account ${id}; there is ${known}, and --new-account NAME makes another`,
  );
}

/** @throws CliError */
async function makeAccount(accounts: AccountStore, order: TokenOrder): Promise<AccountRow> {
  const { newAccount: name, accountId: id, createdUnixMs } = order;
  const account = await accounts.add({ name: name ?? '', id }, createdUnixMs);
  if (account !== undefined) return account;
  throw new CliError(
    EXIT.failed,
    `--account: there is an account ${id} already; leave --account out for a new number, or --new-account for a token of that one`,
  );
}

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
  // Control characters would let a name write into the terminal of users who list it.
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

const HEADINGS = ['ID', 'NAME', 'PERMISSION', 'USER', 'ACCOUNT', 'CREATED', 'LAST USED', 'STATE'];

/** Tokens as a table without their values, of which only hashes are stored. */
export function tokenLines(tokens: readonly TokenRow[], nowUnixMs: number): readonly string[] {
  return alignedRows([HEADINGS, ...tokens.map((token) => cells(token, nowUnixMs))]);
}

function cells(token: TokenRow, nowUnixMs: number): readonly string[] {
  return [
    String(token.id),
    token.name,
    token.permission,
    token.userName ?? '-',
    String(token.accountId),
    dateOf(token.createdUnixMs),
    token.usedUnixMs === null ? 'never' : dateOf(token.usedUnixMs),
    stateOf(token, nowUnixMs),
  ];
}

function stateOf({ revokedUnixMs, expiresUnixMs }: TokenRow, nowUnixMs: number): string {
  if (revokedUnixMs !== null) return `revoked ${dateOf(revokedUnixMs)}`;
  if (expiresUnixMs === null) return 'good';
  return expiresUnixMs <= nowUnixMs ? `expired ${dateOf(expiresUnixMs)}` : `good until ${dateOf(expiresUnixMs)}`;
}
