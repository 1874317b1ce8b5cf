import type { CliCommand } from './command-line.js';

/** `run-bridge webhook list|events|replay` */
export const webhookCommand: CliCommand = {
  name: 'webhook',
  operands: '<list|events|replay> [ID]',
  summary:
    'list webhook subscriptions and their events, and deliver events again; a server that runs need not be stopped',
  settings: ['data-dir', 'database-url'],
  flags: [
    ['--since <TIME>', 'replay: all that failed or were skipped for so long, for example 2h or 1d'],
    ['--subscription <ID>', 'replay: of this subscription only (default: of all)'],
    ['--account <ID>', 'the account (default: the first)'],
  ],
  examples: [
    ['run-bridge webhook list', 'subscriptions, how they stand, and why they were archived'],
    ['run-bridge webhook events wsu_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF', 'its last 100 events'],
    ['run-bridge webhook replay --since 2h', 'what failed or was skipped in the last two hours, again'],
    ['run-bridge webhook replay wev_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF', 'one event, again'],
  ],
  async run(invocation) {
    const { runWebhookCommand } = await import('./webhook/run-webhook-command.js');
    return runWebhookCommand(invocation);
  },
};
