import type { CliCommand } from './command-line.js';

/** `run-bridge pipe` */
export const pipeCommand: CliCommand = {
  name: 'pipe',
  operands: '',
  summary: 'take records from standard input and pass all other lines on to standard output',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'durability',
    'max-disk',
    'disk-reserve',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--tee', 'pass the records on, too'],
    ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
  ],
  examples: [
    ['dbt build --log-format otel | run-bridge pipe', 'keep a run as it comes'],
    ['dbt build --log-format otel | run-bridge pipe --tee > otel.jsonl', 'and have its JSONL, too'],
  ],
  async run(invocation) {
    const { pipe } = await import('./pipe.js');
    return pipe(invocation);
  },
};
