import type { CliCommand } from './command-line.js';

/** `run-bridge import PATH…` */
export const importCommand: CliCommand = {
  name: 'import',
  operands: '<PATH...>',
  summary:
    'take JSONL, Parquet and OTLP JSON files, also .gz and .zst, as if their records were received now; folders and patterns stand for files; a bridge that has the data folder gets them',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'jsonl',
    'durability',
    'max-disk',
    'disk-reserve',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
    [
      '--notify',
      'let the bridge that takes them notify of runs that had ended before, too (default: of none of these)',
    ],
  ],
  examples: [
    ['run-bridge import logs/otel.jsonl', "the engine's own file: JSONL, Parquet and exports are made of it"],
    ["run-bridge import old/ '*.jsonl.zst'", 'folders, patterns, packed files; what is known is written once'],
    ['run-bridge import otel.jsonl --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
  ],
  async run(invocation) {
    const { importFiles } = await import('./import-files.js');
    return importFiles(invocation);
  },
};
