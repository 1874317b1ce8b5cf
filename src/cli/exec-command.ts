import { EXEC_FLAGS, EXEC_SWITCHES } from '../exec/exec-flags.js';
import type { CliCommand } from './command-line.js';

/** `run-bridge exec -- COMMAND…` */
export const execCommand: CliCommand = {
  name: 'exec',
  operands: '<COMMAND...>',
  summary:
    "run a command that runs the engine, and keep the engine's telemetry, without changing how the command behaves",
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'redaction',
    'durability',
    'artifacts',
    'artifacts-endpoint',
    'artifacts-region',
    'artifacts-path-style',
    'max-artifact-bytes',
    'log-level',
    'log-format',
  ],
  flags: [
    ...EXEC_FLAGS.map(([name, placeholder, summary]) => [`--${name} <${placeholder}>`, summary] as const),
    ...EXEC_SWITCHES.map(([name, summary]) => [`--${name}`, summary] as const),
  ],
  examples: [
    ['run-bridge exec -- dbt build', 'run the engine; its exit code is the exit code'],
    ['run-bridge exec --job nightly -- make all', 'a script that runs it several times'],
    ['run-bridge exec --to http://bridge:4318 -- dbt build', 'hand over to a bridge elsewhere'],
  ],
  takesCommand: true,
  async run(invocation) {
    const { runExec } = await import('../exec/run-exec.js');
    return runExec(invocation);
  },
};
