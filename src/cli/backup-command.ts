import type { CliCommand } from './command-line.js';

/** `run-bridge backup DEST` */
export const backupCommand: CliCommand = {
  name: 'backup',
  operands: '<DEST>',
  summary: 'copy the data folder, state and runs, to a new folder; a server may go on meanwhile',
  settings: ['data-dir'],
  flags: [],
  examples: [['run-bridge backup /backups/$(date -I)', 'a folder that serve --data-dir can be started on']],
  async run(invocation) {
    const { backUp } = await import('./back-up.js');
    return backUp(invocation);
  },
};
