import type { CliCommand } from '../cli/command.js';
import { LOG_SETTINGS, STATE_SETTINGS } from '../config/settings.js';
import type { CommandHost } from '../feature.js';

// A door beside `feature.ts`, for the command of exports: the contract of features names metrics, which know destinations.

/** Describes `run-bridge export RUN`, which sends a run to destinations again. */
export function exportCommand(host: Pick<CommandHost, 'openStore' | 'withState'>): CliCommand {
  return {
    name: 'export',
    operands: '<RUN>',
    summary: 'send a run to its destinations again, from its first record; a bridge that has the data folder does it',
    settings: [...STATE_SETTINGS, 'event-hold', 'redaction', ...LOG_SETTINGS],
    flags: [
      ['--to <NAME>', 'the destination, by its name in the configuration (default: all)'],
      ['--account <ID>', 'the account that the run belongs to (default: the first)'],
    ],
    examples: [
      ['run-bridge export 1042', 'by its number; to all destinations'],
      ['run-bridge export 1042 --to tempo', 'to one that lost it, or was configured after it'],
    ],
    async run(invocation) {
      const { runExportCommand } = await import('./command.js');
      return runExportCommand(invocation, host);
    },
  };
}
