import type { CliCommand } from './command-line.js';

/** `run-bridge rebuild`: creates the state from the data folder. */
export const rebuildCommand: CliCommand = {
  name: 'rebuild',
  operands: '',
  summary: 'make the state anew from the data folder, where state.db is lost or damaged; the old one is kept beside it',
  settings: ['data-dir', 'database-url', 'log-level', 'log-format'],
  flags: [],
  examples: [['run-bridge rebuild --data-dir ./data', 'no server may be at work on the folder']],
  run: async (invocation) => {
    const { rebuild } = await import('./rebuild.js');
    return rebuild(invocation);
  },
};
