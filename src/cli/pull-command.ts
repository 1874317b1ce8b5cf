import type { CliCommand } from './command-line.js';

/** `run-bridge pull` */
export const pullCommand: CliCommand = {
  name: 'pull',
  operands: '',
  summary: 'bring in runs of a hosted platform through its API; the token comes from RUN_BRIDGE_PLATFORM_TOKEN',
  settings: [
    'data-dir',
    'database-url',
    'platform-max-file',
    'parquet',
    'jsonl',
    'durability',
    'max-disk',
    'disk-reserve',
    'max-backlog-age',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--base-url <URL>', 'the platform, such as https://cloud.example.com (default: the setting platform-url)'],
    ['--account <ID>', "the account's number (default: the setting platform-account)"],
    ['--run <ID>', 'one run'],
    ['--since <TIME>', 'the runs created since a time, such as 24h, 30d or 2026-01-31T08:00Z'],
    ['--job <ID>', 'of these only the runs of one job'],
    ['--watch', 'go on and bring in each new run, until SIGINT or SIGTERM; the next start goes on there'],
    ['--interval <TIME>', 'how often to look for new runs, 5s to 1d (default: the setting platform-interval, 1m)'],
    ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
  ],
  examples: [
    ['run-bridge pull --base-url https://cloud.example.com --account 7 --run 1234', 'one run of the hosted platform'],
    [
      'run-bridge pull --base-url https://cloud.example.com --account 7 --job 5 --since 24h',
      'those of a job since yesterday',
    ],
    ['run-bridge pull --base-url https://cloud.example.com --account 7 --watch', 'all new ones, as they complete'],
  ],
  async run(invocation) {
    const { pull } = await import('./pull/pull.js');
    return pull(invocation);
  },
};
