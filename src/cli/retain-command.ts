import type { CliCommand } from './command-line.js';

/** `run-bridge retain`: removes now what is older, or more, than the configuration keeps. */
export const retainCommand: CliCommand = {
  name: 'retain',
  operands: '',
  summary:
    'remove runs, artifacts and deliveries of webhooks that are older, or more, than the retain- settings keep; serve does so each hour',
  settings: [
    'data-dir',
    'database-url',
    'processes',
    'retain-telemetry-age',
    'retain-telemetry-size',
    'retain-artifacts-age',
    'retain-artifacts-size',
    'retain-deliveries-age',
    'retain-deliveries-size',
    'max-backlog-age',
    'artifacts',
    'artifacts-endpoint',
    'artifacts-region',
    'artifacts-path-style',
    'log-level',
    'log-format',
  ],
  flags: [['--dry-run', 'only say what would be removed; also while a server is at work on the data folder']],
  examples: [
    ['run-bridge retain --dry-run --retain-telemetry-age 90d', 'what would go if runs were kept for 90 days'],
    ['run-bridge retain', 'remove it now, where no server is at work on the folder'],
  ],
  run: async (invocation) => {
    const { retain } = await import('./retain.js');
    return retain(invocation);
  },
};
