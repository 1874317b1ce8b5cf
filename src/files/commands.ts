import type { CliCommand } from '../cli/command.js';
import { TAKING_SETTINGS } from '../config/settings.js';
import type { IntakeHost } from '../feature.js';

// Commands that bring records of files: a door beside `feature.ts` that loads the rest when a command is run.

/** The flag of commands that take records. */
const TO_BRIDGE = ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'] as const;

/** `run-bridge convert IN OUT` */
export const convertCommand: CliCommand = {
  name: 'convert',
  operands: '<IN> <OUT>',
  summary: 'convert a file between JSONL, Parquet and OTLP JSON lines, by the endings of their names',
  settings: [],
  flags: [],
  examples: [
    ['run-bridge convert telemetry.jsonl telemetry.parquet', "the engine's JSONL as Parquet"],
    ['run-bridge convert telemetry.parquet telemetry.jsonl', 'and back'],
    ['run-bridge convert telemetry.jsonl telemetry.otlp.jsonl', "as OTLP, to read with the Collector's tools"],
  ],
  async run(invocation) {
    const { convert } = await import('./convert-file.js');
    return convert(invocation);
  },
};

/** `run-bridge follow PATH…` */
export function followCommand(host: IntakeHost): CliCommand {
  return {
    name: 'follow',
    operands: '<PATH...>',
    summary: 'read JSONL files while the engine writes them, until SIGINT or SIGTERM; the next start resumes there',
    settings: [...TAKING_SETTINGS, 'jsonl', 'invocation-quiet', 'invocation-silence', 'event-hold'],
    flags: [TO_BRIDGE],
    examples: [
      ['run-bridge follow logs/otel.jsonl', 'a file, which need not exist yet'],
      ["run-bridge follow 'projects/*/logs' extra.jsonl", 'files of folders, also those that come later'],
      ['run-bridge follow logs --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
    ],
    async run(invocation) {
      const { follow } = await import('./follow.js');
      return follow(invocation, host);
    },
  };
}

/** `run-bridge import PATH…` */
export function importCommand(host: IntakeHost): CliCommand {
  return {
    name: 'import',
    operands: '<PATH...>',
    summary:
      'take JSONL, Parquet and OTLP JSON files, also .gz and .zst, as if their records were received now; folders and patterns stand for files; a bridge that has the data folder gets them',
    settings: [...TAKING_SETTINGS, 'jsonl'],
    flags: [
      TO_BRIDGE,
      [
        '--notify',
        'let the bridge that takes them notify of runs that had ended before, too (default: of none of these)',
      ],
    ],
    examples: [
      ['run-bridge import logs/otel.jsonl', "the engine's own file: JSONL, Parquet and exports are made of it"],
      [
        "run-bridge import old/ '*.jsonl.zst'",
        'folders, patterns, compressed files; records that are stored already are skipped',
      ],
      ['run-bridge import otel.jsonl --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
    ],
    async run(invocation) {
      const { importFiles } = await import('./import-files.js');
      return importFiles(invocation, host);
    },
  };
}

/** `run-bridge pipe` */
export function pipeCommand(host: IntakeHost): CliCommand {
  return {
    name: 'pipe',
    operands: '',
    summary: 'take records from standard input and pass all other lines on to standard output',
    settings: TAKING_SETTINGS,
    flags: [['--tee', 'pass the records on, too'], TO_BRIDGE],
    examples: [
      ['dbt build --log-format otel | run-bridge pipe', 'keep a run as it comes'],
      ['dbt build --log-format otel | run-bridge pipe --tee > otel.jsonl', 'and have its JSONL, too'],
    ],
    async run(invocation) {
      const { pipe } = await import('./pipe.js');
      return pipe(invocation, host);
    },
  };
}
