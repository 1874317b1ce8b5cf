import { hashOf, newSecret } from '../../api/token-secret.js';
import { type AccountRow, type AccountStore, FIRST_ACCOUNT_ID } from '../../store/account-store.js';
import type { State } from '../../store/state.js';
import { CliError } from '../cli-error.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import type { ProcessContext } from '../process-context.js';
import { dateOf } from './token-lines.js';
import type { TokenOrder } from './token-order.js';

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
  const whose = token.userName === null ? 'a service token' : `a token of ${token.userName}`;
  const until = token.expiresUnixMs === null ? 'until it is revoked' : `until ${dateOf(token.expiresUnixMs)}`;
  stderr.write(
    `token ${token.id} (${token.name}): ${whose} with ${token.permission} for account ${token.accountId}, good ${until}; it is shown this once:\n`,
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
