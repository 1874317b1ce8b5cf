import { artifactCommand } from '../artifact/feature.js';
import {
  type CliCommand,
  CliError,
  type CommandExit,
  EXIT,
  type ExitCode,
  type ProcessContext,
} from '../cli/command.js';
import { runCommandLine } from '../cli/command-line.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { ListenError } from '../core/http-listener.js';
import { packageVersion } from '../core/package-file.js';
import { cleanText } from '../core/text.js';
import { execCommand } from '../exec/feature.js';
import { exportCommand } from '../export/commands.js';
import type { CommandHost } from '../feature.js';
import { convertCommand, followCommand, importCommand, pipeCommand } from '../files/commands.js';
import { OutputError } from '../log/jsonl-output.js';
import { PlatformError, pullCommand } from '../platform/feature.js';
import { queryCommand } from '../query/feature.js';
import { ConsumeError } from '../record/record-batch.js';
import { diffCommand, reportCommand, runsCommand, topCommand } from '../report/feature.js';
import { deleteCommand, type RetentionCommandHost, retainCommand } from '../retention/commands.js';
import { StepRegistryError } from '../run/step-registry.js';
import { DataFolderInUseError } from '../storage/data-folder.js';
import { StoreError } from '../storage/store-error.js';
import { webhookCommand } from '../webhook/feature.js';
import {
  backupCommand,
  completionCommand,
  configCommand,
  demoCommand,
  finishCommand,
  openCommand,
  rebuildCommand,
  restoreCommand,
  serveCommand,
  tokenCommand,
  versionCommand,
} from './commands.js';

/** What commands of features do with the program, each loaded when it is called. */
const HOST: CommandHost & RetentionCommandHost = {
  openState: async (...of) => (await import('../app/open-state.js')).openStateForCommand(...of),
  async openStore(configuration, context, logger) {
    const [{ openStore }, { appDeps }] = await Promise.all([import('../app.js'), import('./app-deps.js')]);
    return openStore(configuration, appDeps(context, logger));
  },
  openIntake: async (...of) => (await import('./open-intake.js')).openIntake(...of),
  askState: async (...of) => (await import('./command-host.js')).askState(...of),
  withState: async (...of) => (await import('./command-host.js')).withState(...of),
  finishLeftovers: async (...of) => (await import('./command-host.js')).finishLeftovers(...of),
  withRetention: async (...of) => (await import('./open-retention.js')).withRetention(...of),
};

/** Every command, by what it is for, in the order of help texts. */
const COMMAND_GROUPS: Readonly<Record<string, readonly CliCommand[]>> = {
  Run: [
    serveCommand,
    execCommand(HOST),
    finishCommand,
    followCommand(HOST),
    pipeCommand(HOST),
    importCommand(HOST),
    pullCommand(HOST),
    demoCommand,
  ],
  Look: [
    openCommand,
    runsCommand(HOST),
    reportCommand(HOST),
    diffCommand(HOST),
    topCommand(HOST),
    queryCommand(HOST),
    artifactCommand(HOST.withState),
  ],
  Share: [tokenCommand, webhookCommand(HOST.withState), exportCommand(HOST), convertCommand],
  Keep: [retainCommand(HOST), deleteCommand(HOST), backupCommand, restoreCommand, rebuildCommand],
  'run-bridge itself': [configCommand, completionCommand(() => COMMANDS), versionCommand],
};
export const COMMANDS: readonly CliCommand[] = Object.values(COMMAND_GROUPS).flat();

/**
 * The whole program. Expected errors are reported in one line each on standard error.
 * @param args without the program's own name.
 */
export async function runCli(args: readonly string[], context: ProcessContext): Promise<ExitCode | CommandExit> {
  try {
    return await runCommandLine(args, COMMAND_GROUPS, context, packageVersion(context.packageDir));
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
