import type { CliCommand } from '../cli/command.js';
import type { ExecHost } from './exec-target.js';
import type { Leftovers, LeftoversDeps } from './leftovers.js';

// The door of `exec`: no other folder imports anything else of this one. It loads the rest when a command is run.

export { ENTRY_FILE, SPOOL_FOLDER } from './command-folder.js';
export type { Leftovers } from './leftovers.js';

/**
 * Takes in what commands left behind in a data folder.
 * @param to the bridge that they named; `null` for those that named none
 */
export async function createLeftovers(dataFolder: string, to: string | null, deps: LeftoversDeps): Promise<Leftovers> {
  const { Leftovers } = await import('./leftovers.js');
  return new Leftovers(dataFolder, to, deps);
}

/** The options that have a value, each with its variable: `--run-id` is `RUN_BRIDGE_RUN_ID`. */
const EXEC_FLAGS: readonly (readonly [name: string, placeholder: string, summary: string])[] = [
  ['to', 'URL', 'report to this bridge (default: one that uses the data folder or answers on its port, else none)'],
  ['flush-timeout', 'TIME', 'how long exports may take when the command has ended (default: 10s)'],
  ['run-id', 'ID', 'name of the run; several commands with one name are steps of one run'],
  ['job', 'NAME', 'job that the run belongs to'],
  ['environment', 'NAME', 'environment that the run belongs to, such as production'],
  ['project', 'NAME', 'project that the run belongs to'],
  ['reason', 'TEXT', 'why the run was started'],
  [
    'report',
    'LIST',
    'write reports at the end: formats of run-bridge report, each with =FILE or to standard error, as in text,junit=PATH',
  ],
  ['step-id', 'ID', 'id of this step, unique and made up by the caller (default: a random one)'],
];

/** The options without a value. */
const EXEC_SWITCHES: readonly (readonly [name: string, summary: string])[] = [
  ['last', 'the run is finished when this step has ended'],
  ['platform-env', "set the platform's variables of a run, such as DBT_CLOUD_RUN_ID (--job does, too)"],
  ['span', 'add a span for the command itself: exit code, CPU time, peak memory'],
  ['summary', 'say at the end, on standard error, how it ended, why, and where the run is'],
  ['no-ci', 'leave the summary of a CI step (GitHub, Azure Pipelines) as it is'],
  ['quiet', 'say nothing, not even what went wrong with the bridge'],
];

/** `run-bridge exec -- COMMAND…` */
export function execCommand(host: ExecHost): CliCommand {
  return {
    name: 'exec',
    operands: '<COMMAND...>',
    summary:
      "run a command that runs the engine, and keep the engine's telemetry, without changing how the command behaves",
    settings: [
      'data-dir',
      'database-url',
      'parquet',
      'redaction',
      'engine-names',
      'durability',
      'artifacts',
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
      ['run-bridge exec --to http://bridge:4318 -- dbt build', 'report to a bridge elsewhere'],
    ],
    takesCommand: true,
    async run(invocation) {
      const { runExec } = await import('./run-exec.js');
      return runExec(invocation, host);
    },
  };
}
