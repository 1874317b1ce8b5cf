import { PERMISSION_SETS } from '../storage/permission-set.js';
import type { CliCommand } from './command-line.js';

/** `run-bridge token create|list|revoke` */
export const tokenCommand: CliCommand = {
  name: 'token',
  operands: '<create|list|revoke> [ID]',
  summary: 'make, list and revoke the tokens of the API and of OTLP; a server that runs need not be stopped',
  settings: ['data-dir', 'database-url'],
  flags: [
    ['--name <NAME>', 'create: what it is for, in your words'],
    ['--permission <SET>', `create: what it may do: ${PERMISSION_SETS.join(', ')}`],
    ['--expires <TIME>', 'create: how long it is good, for example 12h or 90d (default: until it is revoked)'],
    ['--user <NAME>', 'create: whose it is (default: nobody: a service token)'],
    ['--account <ID>', 'create: the account that it belongs to (default: the first)'],
    ['--new-account <NAME>', 'create: makes an account, whose token it is; its runs are its own'],
  ],
  examples: [
    [
      'run-bridge token create --name airflow --permission admin --expires 90d',
      'prints the token; it is shown only once',
    ],
    ['run-bridge token create --name ci --permission developer --new-account finance', 'for runs of its own'],
    ['run-bridge token list', 'list all tokens, without their values'],
    ['run-bridge token revoke 1002', 'refused within five seconds'],
  ],
  async run(invocation) {
    const { runTokenCommand } = await import('./token/run-token-command.js');
    return runTokenCommand(invocation);
  },
};
