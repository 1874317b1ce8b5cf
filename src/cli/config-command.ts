import { SETTING_KEYS } from '../config/settings.js';
import { alignedRows } from '../core/aligned-rows.js';
import type { CliCommand } from './command-line.js';
import { EXIT } from './exit-code.js';

/** `run-bridge config`: each value and its origin. */
export const configCommand: CliCommand = {
  name: 'config',
  operands: '',
  summary: 'print the configuration in force and where each value came from; secrets are masked',
  settings: SETTING_KEYS,
  flags: [['--json', 'print JSON']],
  examples: [
    ['run-bridge config', 'check a configuration before it is used'],
    ['run-bridge config --config prod.yaml --json', 'the same as JSON'],
  ],
  async run(invocation) {
    const { resolveForCommand } = await import('./resolve-for-command.js');
    const { stdout, stderr } = invocation.context;
    const { rows, file, warnings } = await resolveForCommand(invocation);
    for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
    if (invocation.switches.has('json')) {
      const settings = Object.fromEntries(rows.map(({ name, value, origin }) => [name, { value, origin }]));
      stdout.write(`${JSON.stringify({ file, settings }, null, 2)}\n`);
      return EXIT.ok;
    }
    stdout.write(`# configuration file: ${file ?? 'none'}\n`);
    for (const line of alignedRows(rows.map(({ name, value, origin }) => [name, value, origin])))
      stdout.write(`${line}\n`);
    return EXIT.ok;
  },
};
