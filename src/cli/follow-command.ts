import type { CliCommand } from './command-line.js';

/** `run-bridge follow PATH…` */
export const followCommand: CliCommand = {
  name: 'follow',
  operands: '<PATH...>',
  summary: 'take JSONL files while the engine writes them, until SIGINT or SIGTERM; the next start goes on there',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'jsonl',
    'durability',
    'max-disk',
    'disk-reserve',
    'invocation-quiet',
    'invocation-silence',
    'event-hold',
    'max-backlog-age',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [['--to <URL>', 'send the records to a bridge that is running, instead of writing them here']],
  examples: [
    ['run-bridge follow logs/otel.jsonl', 'a file, which need not exist yet'],
    ["run-bridge follow 'projects/*/logs' extra.jsonl", 'files of folders, also those that come later'],
    ['run-bridge follow logs --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
  ],
  async run(invocation) {
    const { follow } = await import('./follow.js');
    return follow(invocation);
  },
};
