import type { CliCommand } from '../cli/command.js';
import { LOG_SETTINGS, STATE_SETTINGS } from '../config/settings.js';
import type { RetentionCommandHost } from './command.js';

// Commands that remove runs: a door beside `feature.ts` that loads the rest when a command is run.

export type { CommandRetentionHost, RetentionCommandHost } from './command.js';

/** `run-bridge delete RUN`: a run with all its data. */
export function deleteCommand(host: RetentionCommandHost): CliCommand {
  return {
    name: 'delete',
    operands: '<RUN>',
    summary: 'delete a run with all its data; a bridge that has the data folder does it, if one is running',
    settings: [...STATE_SETTINGS, 'processes', 'artifacts', ...LOG_SETTINGS],
    flags: [
      ['--yes', 'do not ask'],
      ['--with-shared', 'also delete runs that share its trace: a trace is removed as a whole'],
      ['--account <ID>', 'the account that it belongs to (default: the first)'],
      ['--to <URL>', 'the bridge that has it (default: the data folder, or the bridge that uses it)'],
    ],
    examples: [
      ['run-bridge delete 1042 --yes', 'by its number; without --yes it asks first'],
      [
        'run-bridge delete 1042 --yes --to http://bridge:4380',
        'at a bridge elsewhere, with RUN_BRIDGE_TOKEN of an admin',
      ],
    ],
    async run(invocation) {
      const { deleteRun } = await import('./command.js');
      return deleteRun(invocation, host);
    },
  };
}

/** `run-bridge retain`: removes now what is older, or more, than the configuration keeps. */
export function retainCommand(host: RetentionCommandHost): CliCommand {
  return {
    name: 'retain',
    operands: '',
    summary:
      'remove runs, artifacts and deliveries of webhooks that are older, or more, than the retain- settings keep; serve does so each hour',
    settings: [
      ...STATE_SETTINGS,
      'processes',
      'retain-telemetry',
      'retain-artifacts',
      'retain-deliveries',
      'max-backlog-age',
      'artifacts',
      ...LOG_SETTINGS,
    ],
    flags: [['--dry-run', 'only list what would be removed; also while a server is running on the data folder']],
    examples: [
      ['run-bridge retain --dry-run --retain-telemetry 90d', 'what would go if runs were kept for 90 days'],
      ['run-bridge retain', 'remove it now, if no server is running on the folder'],
    ],
    async run(invocation) {
      const { retain } = await import('./command.js');
      return retain(invocation, host);
    },
  };
}
