import { Command, CommanderError } from 'commander';
import { removedProblem } from '../config/removed-settings.js';
import { SETTINGS, type SettingKey } from '../config/settings.js';
import { nearestName } from '../config/suggestion.js';
import { alignedRows, cleanLine, cleanText } from '../core/text.js';
import {
  type CliCommand,
  CONFIG_FLAG,
  type CommandExit,
  EXIT,
  type ExitCode,
  type Invocation,
  type ProcessContext,
} from './command.js';

const HELP_END = `
run-bridge help COMMAND has the options of a command, and examples.

Exit codes:
  0  done
  1  could not be done, or not all of it
  2  wrong command line or configuration; a port or folder that cannot be used
  3  done, but some records could not be read and were skipped`;

/**
 * Parses the command line and runs the command. Errors in it are reported in one line on standard error.
 * @param args without the program's own name @param groups commands, by the heading that they stand under in the help
 */
export async function runCommandLine(
  args: readonly string[],
  groups: Readonly<Record<string, readonly CliCommand[]>>,
  context: ProcessContext,
  version: string,
): Promise<ExitCode | CommandExit> {
  let exitCode: ExitCode | CommandExit = EXIT.ok;
  const commands = Object.entries(groups).flatMap(([group, listed]) => listed.map((one) => ({ ...one, group })));
  const parser = new Command('run-bridge')
    .description(
      'Receives the telemetry of dbt 2 (dbt, dbt-oss), the engine, keeps every record of its runs and passes it on.',
    )
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .enablePositionalOptions()
    .commandsGroup('run-bridge itself:')
    .helpCommand('help [command]', 'print help on a command')
    .addHelpText('after', HELP_END);
  for (const command of commands) {
    const sub = configure(parser.command(`${command.name} ${command.operands}`.trim()), context)
      .helpGroup(`${command.group}:`)
      .summary(sentence(firstPart(command.summary)))
      .description(sentence(command.summary))
      .helpOption('-h, --help', 'print this help')
      .addHelpText('after', examples(command.examples));
    if (command.takesCommand === true) sub.passThroughOptions();
    for (const [flag, summary] of command.flags) sub.option(flag, summary);
    for (const key of command.settings) sub.option(`--${key} <${SETTINGS[key].placeholder}>`, settingHelp(key));
    if (command.settings.length > 0) sub.option(...CONFIG_FLAG);
    sub.action(async () => {
      exitCode = await command.run(toInvocation(sub, context));
    });
  }
  const [first, helped] = args;
  if (first === 'help' && helped !== undefined && !helped.startsWith('-')) {
    const names = commands.map(({ name }) => name);
    if (!names.includes(helped)) {
      const near = nearestName(helped, names);
      const hint = near === undefined ? 'see run-bridge --help' : `did you mean ${near}?`;
      context.stderr.write(`run-bridge: unknown command ${cleanLine(JSON.stringify(helped))}; ${hint}\n`);
      return EXIT.usage;
    }
  }
  try {
    await configure(parser, context).parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  return exitCode;
}

function configure(command: Command, { stdout, stderr }: ProcessContext): Command {
  return command.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    outputError: (text, write) => write(oneLine(cleanText(text))),
    getOutHelpWidth: () => 100,
    getErrHelpWidth: () => 100,
  });
}

/** Commander's message and its suggestion, which it puts on a separate line, as one line. */
function oneLine(text: string): string {
  const [message = '', suggestion = ''] = text.trim().split('\n');
  const flag = /^error: unknown option '--([^'=]+)/.exec(message)?.[1] ?? '';
  const removed = removedProblem(flag, `--${flag}`);
  if (removed !== undefined) return `run-bridge: ${removed}\n`;
  const hint = suggestion.replace(/^\(Did you mean (?:one of )?(.*)\?\)$/, 'did you mean $1?');
  return `run-bridge: ${message.replace(/^error: /, '').replace(/\.$/, '')}; ${hint === '' ? 'see run-bridge --help' : hint}\n`;
}

function toInvocation(command: Command, context: ProcessContext): Invocation {
  const flags: Record<string, string> = {};
  const switches = new Set<string>();
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (typeof value === 'string') flags[option.name()] = value;
    // Of `--no-x` the parser keeps the value of x, which is true by default.
    else if (value === !option.negate) switches.add(option.name());
  }
  return { context, flags, switches, operands: command.args };
}

function settingHelp(key: SettingKey): string {
  const { summary, defaultText } = SETTINGS[key];
  return defaultText === null ? summary : `${summary} (default: ${defaultText})`;
}

function examples(lines: readonly (readonly [string, string])[]): string {
  return ['\nExamples:', ...alignedRows(lines).map((line) => `  ${line}`), ''].join('\n');
}

/** A summary without what is in brackets, and without what follows a semicolon or colon. */
function firstPart(summary: string): string {
  return summary.replaceAll(/ \([^)]*\)/g, '').replace(/[;:] .*/, '');
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
