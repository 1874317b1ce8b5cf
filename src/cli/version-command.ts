import type { CliCommand } from './command-line.js';
import { EXIT } from './exit-code.js';
import { packageVersion } from './package-info.js';

/** `run-bridge version` */
export const versionCommand: CliCommand = {
  name: 'version',
  operands: '',
  summary: 'print the versions of run-bridge and of Node',
  settings: [],
  flags: [],
  examples: [['run-bridge version', 'for a bug report']],
  async run({ context }) {
    context.stdout.write(`run-bridge ${packageVersion(context.packageDir)} (Node ${context.nodeVersion})\n`);
    return EXIT.ok;
  },
};
