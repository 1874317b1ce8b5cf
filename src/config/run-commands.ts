import { isEngineProgram } from '../run/measures/execution.js';
import { type JobDefinition, joinCommandLine, MAX_COMMANDS, splitCommandLine } from './jobs.js';

/** What a run does, one after the other, or why it cannot be done, as a sentence. */
export type RunCommands = { readonly commands: readonly (readonly string[])[] } | { readonly problem: string };

/**
 * The commands of a run of a job: the job's own, or other steps where the job takes them. Such a step is a line that begins with
 * `dbt`, has one of a few commands of the engine, and none but flags that say which nodes are run and how. It is run by the job's
 * own engine, with the job's own project, profile, target and folders: nothing of a step is a program or names a file.
 * @param steps command lines in place of the job's; `null` for the job's own
 */
export function commandsOfRun(job: JobDefinition, steps: readonly string[] | null): RunCommands {
  if (steps === null) return { commands: job.commands };
  const engineCommand = job.takesOtherSteps ? engineCommandOf(job) : undefined;
  if (engineCommand === undefined) {
    return {
      problem: `The job ${JSON.stringify(job.name)} takes no steps_override: it does what run-bridge.yaml declares. Set "steps-override: true" for it there and restart run-bridge, or leave steps_override out.`,
    };
  }
  if (steps.length > MAX_COMMANDS) return { problem: `steps_override has more than ${MAX_COMMANDS} steps.` };
  const [engine = ''] = engineCommand;
  const kept = placeFlagsOf(engineCommand);
  const commands: (readonly string[])[] = [];
  for (const [index, line] of steps.entries()) {
    const read = readStep(line, engine);
    if ('problem' in read)
      return { problem: `Step ${index + 1} of steps_override ${read.problem}: ${shortened(line)}` };
    commands.push([engine, ...read.words, ...kept]);
  }
  return { commands };
}

/** The lines of what a run does, as they were asked for or as the job has them. */
export function linesOfRun({ commands }: JobDefinition, steps: readonly string[] | null): readonly string[] {
  return steps ?? commands.map(joinCommandLine);
}

/** The first command of a job that is the engine's; `undefined` where none is. */
export function engineCommandOf({ commands }: Pick<JobDefinition, 'commands'>): readonly string[] | undefined {
  return commands.find(([program = '']) => isEngineProgram(program));
}

/** What a step may say; docs/reference/jobs.md shows it as a table. */
export const STEP_WORDS = {
  /**
   * Commands of the engine. What would run SQL or macros of the request (`show`, `run-operation`), change the project or the
   * program (`init`, `clean`, `system`) or never end (`docs serve`) is not among them.
   */
  commands: [
    ...['build', 'clone', 'compile', 'deps', 'docs generate', 'list', 'ls', 'parse', 'run', 'seed', 'snapshot'],
    ...['source freshness', 'test'],
  ],
  /** Flags that have a value. */
  valued: [
    ...['--select', '-s', '--models', '--model', '-m', '--exclude', '--selector', '--indirect-selection'],
    ...['--resource-type', '--resource-types', '--exclude-resource-type', '--exclude-resource-types'],
    ...['--vars', '--threads', '--static-analysis', '--warn-error-options', '--event-time-start', '--event-time-end'],
    ...['--sample', '--log-level', '--log-format'],
  ],
  /** Flags that stand alone; `--no-` in front turns most of them round. */
  switches: [
    ...['--full-refresh', '-f', '--fail-fast', '-x', '--quiet', '-q', '--debug', '-d', '--empty', '--defer'],
    ...['--favor-state', '--store-failures', '--warn-error', '--partial-parse', '--introspect', '--print'],
    ...['--use-colors', '--write-json', '--write-catalog', '--version-check', '--populate-cache'],
    ...['--cache-selected-only', '--force-node-selection', '--check-all', '--send-anonymous-usage-stats'],
  ],
  /** Flags that say where a command works: a step has those of the job's own command, and none of its own. */
  places: [
    ...['--target', '-t', '--profile', '--profiles-dir', '--project-dir', '--packages-install-path', '--target-path'],
    ...['--log-path', '--state', '--defer-state'],
  ],
} as const;
const STEP_COMMANDS: ReadonlySet<string> = new Set(STEP_WORDS.commands);
const VALUED: ReadonlySet<string> = new Set(STEP_WORDS.valued);
const SWITCHES: ReadonlySet<string> = new Set(STEP_WORDS.switches);
const PLACES: ReadonlySet<string> = new Set(STEP_WORDS.places);
/** Commands of two words begin with these. */
const GROUPS: ReadonlySet<string> = new Set(['docs', 'source']);

function readStep(line: string, engine: string): { readonly words: readonly string[] } | { readonly problem: string } {
  const split = splitCommandLine(line);
  if ('problem' in split) return split;
  const [program = '', ...rest] = split.words;
  if (program !== 'dbt' && program !== engine) return { problem: 'does not begin with dbt' };
  const words = rest.flatMap(parted);
  const refused = words.find((word) => word.startsWith('-') && !isAllowed(flagName(word)));
  if (refused !== undefined) {
    return { problem: `has ${shortened(flagName(refused))}, which only commands of the configuration may have` };
  }
  // What follows a flag with a value may look like a command, so only switches may stand in front of it.
  const at = words.findIndex((word) => !isSwitch(word));
  const [first = '', second = ''] = at < 0 ? [] : words.slice(at);
  const command = GROUPS.has(first) ? `${first} ${second}` : first;
  if (STEP_COMMANDS.has(command)) return { words };
  const commands = STEP_WORDS.commands.join(', ');
  return { problem: `has no command that is allowed there (${commands})` };
}

/** Dagster quotes a flag and its value as one word, which no program would understand. */
function parted(word: string): readonly string[] {
  const [, flag, value] = /^(--[a-z-]+) (.+)$/s.exec(word) ?? [];
  return flag === undefined || value === undefined ? [word] : [flag, value];
}

function flagName(word: string): string {
  return word.split('=', 1).join('');
}

function isSwitch(word: string): boolean {
  return SWITCHES.has(word.replace(/^--no-/, '--'));
}

function isAllowed(name: string): boolean {
  return isSwitch(name) || VALUED.has(name);
}

function placeFlagsOf(words: readonly string[]): readonly string[] {
  return words.filter((word, at) => {
    const isValue = PLACES.has(words[at - 1] ?? '');
    return isValue || PLACES.has(flagName(word)) || /^-t./.test(word);
  });
}

/** Texts of a request are repeated, but not whole. */
function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
