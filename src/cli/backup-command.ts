import type { CliCommand } from './command-line.js';

/** `run-bridge backup DEST`: copies the data folder. */
export const backupCommand: CliCommand = {
  name: 'backup',
  operands: '<DEST>',
  summary: 'copy the data folder, state and runs, to a new folder; a server may go on meanwhile',
  settings: ['data-dir'],
  flags: [],
  examples: [['run-bridge backup /backups/$(date -I)', 'restore brings it back']],
  async run(invocation) {
    const { backUp } = await import('./back-up.js');
    return backUp(invocation);
  },
};

/** `run-bridge restore BACKUP`: makes a data folder of what `backup` wrote. */
export const restoreCommand: CliCommand = {
  name: 'restore',
  operands: '<BACKUP>',
  summary: 'fill an empty or new data folder from a backup, which stays as it is',
  settings: ['data-dir', 'database-url'],
  flags: [],
  examples: [['run-bridge restore /backups/2026-11-20 --data-dir ./data', 'then: run-bridge serve --data-dir ./data']],
  async run(invocation) {
    const { restore } = await import('./restore.js');
    return restore(invocation);
  },
};
