import { ConfigurationError } from '../config/configuration-error.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { ListenError } from '../core/http-listener.js';
import { cleanText } from '../core/text.js';
import { execCommand } from '../exec/feature.js';
import type { CommandHost } from '../feature.js';
import { OutputError } from '../log/jsonl-output.js';
import { PlatformError, pullCommand } from '../platform/feature.js';
import { queryCommand } from '../query/feature.js';
import { ConsumeError } from '../record/record-batch.js';
import { diffCommand, reportCommand, runsCommand, topCommand } from '../report/feature.js';
import { StepRegistryError } from '../run/step-registry.js';
import { DataFolderInUseError } from '../storage/data-folder-in-use-error.js';
import { StoreError } from '../storage/store-error.js';
import { webhookCommand } from '../webhook/feature.js';
import { CliError } from './cli-error.js';
import { type CliCommand, runCommandLine } from './command-line.js';
import {
  backupCommand,
  completionCommand,
  configCommand,
  convertCommand,
  deleteCommand,
  demoCommand,
  exportCommand,
  finishCommand,
  followCommand,
  importCommand,
  openCommand,
  pipeCommand,
  rebuildCommand,
  restoreCommand,
  retainCommand,
  serveCommand,
  tokenCommand,
  versionCommand,
} from './commands.js';
import { type CommandExit, EXIT, type ExitCode } from './exit-code.js';
import { packageVersion } from './package-info.js';
import type { ProcessContext } from './process-context.js';

/** What commands of features do with the program, each loaded when it is called. */
const COMMAND_HOST: CommandHost = {
  openState: async (...of) => (await import('../app/open-state.js')).openStateForCommand(...of),
  async openStore(configuration, context, logger) {
    const [{ openStore }, { appDeps }] = await Promise.all([import('../app.js'), import('./app-deps.js')]);
    return openStore(configuration, appDeps(context, logger));
  },
  askState: async (...of) => (await import('./folder-state.js')).askFolderState(...of),
  finishLeftovers: async (...of) => (await import('./finish-leftovers.js')).finishLeftovers(...of),
};

/** Every command, in the order of help texts. */
export const COMMANDS: readonly CliCommand[] = [
  serveCommand,
  openCommand,
  execCommand(COMMAND_HOST),
  finishCommand,
  runsCommand(COMMAND_HOST),
  reportCommand(COMMAND_HOST),
  diffCommand(COMMAND_HOST),
  topCommand(COMMAND_HOST),
  queryCommand(COMMAND_HOST),
  demoCommand,
  followCommand,
  pipeCommand,
  importCommand,
  pullCommand({
    once: async (...of) => (await import('./open-pull.js')).openPull.once(...of),
    watching: async (...of) => (await import('./open-pull.js')).openPull.watching(...of),
  }),
  convertCommand,
  tokenCommand,
  deleteCommand,
  exportCommand,
  retainCommand,
  webhookCommand(async (...of) => (await import('./folder-state.js')).withState(...of)),
  backupCommand,
  restoreCommand,
  rebuildCommand,
  configCommand,
  completionCommand(() => COMMANDS),
  versionCommand,
];

/**
 * The whole program. Expected errors are reported in one line each on standard error.
 * @param args without the program's own name.
 */
export async function runCli(args: readonly string[], context: ProcessContext): Promise<ExitCode | CommandExit> {
  try {
    return await runCommandLine(args, COMMANDS, context, packageVersion(context.packageDir));
  } catch (error) {
    const [exitCode, problems] = context.stop.aborted && isAbort(error) ? STOPPED : explain(error);
    for (const problem of problems) context.stderr.write(`${cleanText(`run-bridge: ${problem}`)}\n`);
    return exitCode;
  }
}

const STOPPED = [
  EXIT.failed,
  ['stopped before it was done; what was taken is kept, and doing it again is safe'],
] as const;

const TOO_FEW_FILES = 'too few files may be open; raise the limit, for example with ulimit -n 4096';

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || isAbort(error.cause));
}

/** @throws unexpected errors. */
function explain(error: unknown): readonly [ExitCode, readonly string[]] {
  if (error instanceof CliError) return [error.exitCode, [error.message]];
  if (error instanceof ConfigurationError) return [EXIT.usage, error.problems];
  const isForeseen =
    error instanceof ListenError ||
    error instanceof DataFolderInUseError ||
    error instanceof StoreError ||
    error instanceof OutputError;
  const isFailure =
    error instanceof ConsumeError || error instanceof PlatformError || error instanceof StepRegistryError;
  if (isFailure) return [EXIT.failed, [error.message]];
  if (isForeseen) return [EXIT.usage, [error.message]];
  const advice = SYSTEM_ADVICE[errorCode(error) ?? ''];
  if (advice !== undefined) return [EXIT.usage, [`${reasonOf(error)}: ${advice}`]];
  throw error;
}

/** Advice for system errors that are not handled where they occur. */
const SYSTEM_ADVICE: Readonly<Record<string, string>> = {
  ...{ EACCES: 'give this user the right to it', EPERM: 'give this user the right to it' },
  EROFS: 'the file system can only be read; choose a folder on another one',
  ...{ ENOSPC: 'the disk is full; free some space', EDQUOT: 'the quota is used up; free some space' },
  ...{ EMFILE: TOO_FEW_FILES, ENFILE: TOO_FEW_FILES },
  EIO: 'the disk reports errors',
};
