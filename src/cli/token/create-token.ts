import { hashOf, newSecret } from '../../api/token-secret.js';
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
  if ((await accounts.find(order.accountId)) === undefined) {
    const known = (await accounts.list()).map(({ id }) => id).join(', ');
    throw new CliError(EXIT.failed, `--account: there is no account ${order.accountId}; there is ${known}`);
  }
  const secret = newSecret();
  const token = await tokens.add({ ...order, hash: hashOf(secret).toString('hex') });
  const whose = token.userName === null ? 'a service token' : `a token of ${token.userName}`;
  const until = token.expiresUnixMs === null ? 'until it is revoked' : `until ${dateOf(token.expiresUnixMs)}`;
  stderr.write(
    `token ${token.id} (${token.name}): ${whose} with ${token.permission} for account ${token.accountId}, good ${until}; it is shown this once:\n`,
  );
  stdout.write(`${secret}\n`);
  return EXIT.ok;
}
