import type { NodeVerdict } from '../verdict.js';

/**
 * Commands that read, compile, show or copy nodes and execute none, to whatever phase their nodes get: that of `show` is `RUN`
 * as well. They are named as `eval_args.command` names them.
 */
export const PREPARING_COMMANDS: readonly string[] = [
  'clean',
  'clone',
  'compile',
  'debug',
  'deps',
  'docs',
  'init',
  'list',
  'ls',
  'parse',
  'show',
];
const PREPARING: ReadonlySet<string> = new Set(PREPARING_COMMANDS);

/** Other commands of the engine. */
const EXECUTING_COMMANDS = [
  'build',
  'freshness',
  'retry',
  'run',
  'run-operation',
  'seed',
  'snapshot',
  'source',
  'test',
];
const COMMANDS: ReadonlySet<string> = new Set([...PREPARING_COMMANDS, ...EXECUTING_COMMANDS]);

/** Flags whose next word is their value, where it stands before the command or may be named as one is. */
const FLAGS_WITH_VALUE: ReadonlySet<string> = new Set([
  ...['--target', '-t', '--profile', '--profiles-dir', '--project-dir', '--target-path', '--packages-install-path'],
  ...['--log-level', '--log-level-file', '--log-format', '--log-format-file', '--log-path', '--log-file-max-bytes'],
  ...['--otel-file-name', '--otel-parquet-file-name', '--invocation-id', '--parent-span-id', '--printer-width'],
  ...['--threads', '--vars', '--event-time-start', '--event-time-end', '--indirect-selection', '--record-timing-info'],
  ...['--state', '--defer-state', '--warn-error-options', '--resource-type', '--exclude-resource-type', '--output'],
  ...['--select', '-s', '--models', '--model', '-m', '--exclude', '--selector'],
]);
const ENGINE = /(?:^|[\\/])dbtf?(?:\.exe)?$/;

/** Whether a program, by its name or path, is the engine. */
export function isEngineProgram(program: string): boolean {
  return ENGINE.test(program);
}

/**
 * The command of a command line, such as `build` of `uv run dbt --log-level debug build --select x`; `null` where it has none that
 * is known.
 */
export function commandWord(line: string): string | null {
  const all = line.split(' ').filter((word) => word !== '');
  const words = all.slice(Math.max(0, all.findIndex(isEngineProgram)) + 1);
  const isValue = (at: number) => FLAGS_WITH_VALUE.has(words[at - 1] ?? '');
  return words.find((word, at) => COMMANDS.has(word) && !isValue(at)) ?? null;
}

/** Phases in which nodes are executed: models, tests, seeds and snapshots in the first, sources in the second. */
export const EXECUTING_PHASES: readonly string[] = ['RUN', 'FRESHNESS_ANALYSIS'];
const EXECUTING: ReadonlySet<string> = new Set(EXECUTING_PHASES);

/** Whether a command executes nodes; one whose name is not known may. @param command its first word, such as `build` */
export function executesNodes(command: string | null): boolean {
  return command === null || !PREPARING.has(command);
}

/**
 * How a command line asks for nodes that read no rows, as a regular expression: what is made so is empty, and a test of it finds
 * nothing, so that it is tried and not executed.
 */
export const NO_ROWS_PATTERN = '(^|\\s)--empty(\\s|$)';
const NO_ROWS = new RegExp(NO_ROWS_PATTERN);

/** Whether a command line asks for nodes that read no rows (`--empty`). */
export function readsNoRows(line: string | null): boolean {
  return line !== null && NO_ROWS.test(line);
}

/**
 * Whether a command executed a node, to an outcome: it did well in a phase that executes, or it failed, in whichever phase. What
 * was skipped, interrupted or never ended has no outcome; what was only compiled or shown, or read no rows, is neither good nor bad. This alone
 * says what makes history: passes and failures, since when something fails, recoveries, usual durations, JUnit's cases and
 * `is_executed` of queries, which says the same in SQL.
 * @param lastPhase without its prefix; `null` where the telemetry has none, and the command alone decides
 */
export function isExecuted(
  { command, rawCommand }: { readonly command: string | null; readonly rawCommand: string | null },
  { verdict, lastPhase }: { readonly verdict: NodeVerdict; readonly lastPhase: string | null },
): boolean {
  if (!executesNodes(command) || readsNoRows(rawCommand)) return false;
  switch (verdict) {
    case 'success':
    case 'warned':
      return lastPhase === null || EXECUTING.has(lastPhase);
    case 'failed':
    case 'error':
      return true;
    default:
      return false;
  }
}

/** Whether a verdict is a failure. */
export function isBad(verdict: NodeVerdict): boolean {
  return verdict === 'error' || verdict === 'failed';
}
