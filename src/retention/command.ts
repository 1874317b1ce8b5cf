import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { bridgeHeaders, bridgeUrl } from '../cli/bridge/bridge.js';
import { addressOfHolder, askOfRun, readRunName, unknownRun, withBriefToken } from '../cli/bridge/own-bridge.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext, readAccount } from '../cli/command.js';
import { readExportConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import type { Logger } from '../core/logger.js';
import { counted } from '../core/text.js';
import type { CommandHost } from '../feature.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { STATE_FILE } from '../storage/data-folder.js';
import { type DataFolderLock, takeDataFolder } from '../storage/data-folder-lock.js';
import type { State } from '../storage/state.js';
import { type RetentionHost, removeRunOnce, retainOnce } from './feature.js';
import { RunRemovalError } from './run-remover.js';
import type { RetainedKind, SweepResult } from './sweep.js';

/** What retention works with where no server runs. */
export type CommandRetentionHost = RetentionHost & { readonly state: State; readonly logger: Logger };

/** What the commands need of the program. */
export interface RetentionCommandHost extends Pick<CommandHost, 'withState'> {
  /**
   * Opens what retention works with, and closes it after `body`. The caller has the data folder.
   * @param options.isDry whether nothing is to be changed: then a server may be running on the database
   * @throws CliError, ConfigurationError, StoreError
   */
  withRetention<T>(
    configuration: Configuration,
    context: ProcessContext,
    options: { readonly isDry: boolean },
    body: (host: CommandRetentionHost) => Promise<T>,
  ): Promise<T>;
}

/** What `run-bridge retain` does. @throws CliError, ConfigurationError, DataFolderInUseError, StoreError, ArtifactError */
export async function retain(invocation: Invocation, host: RetentionCommandHost): Promise<ExitCode> {
  const { context, switches } = invocation;
  const configuration = await readExportConfiguration(invocation);
  refuseElsewhere(configuration);
  const isDry = switches.has('dry-run');
  if (configuration.processes === 'several') {
    // Shared data is in no data folder, so none is opened.
    await sweep(configuration, context, host, isDry);
    return EXIT.ok;
  }
  const folder = configuration['data-dir'];
  if (!existsSync(folder)) throw new CliError(EXIT.failed, `${folder}: the data folder does not exist`);
  const lock = isDry ? undefined : takeDataFolder(folder, context.pid, context.clock.nowUnixMs());
  try {
    await sweep(configuration, context, host, isDry);
  } finally {
    lock?.release();
  }
  return EXIT.ok;
}

async function sweep(
  configuration: Configuration,
  context: ProcessContext,
  { withRetention }: RetentionCommandHost,
  isDry: boolean,
): Promise<void> {
  const { clock, stop, stdout } = context;
  await withRetention(configuration, context, { isDry }, async (host) => {
    const swept = retainOnce(configuration, host, { nowUnixMs: clock.nowUnixMs(), isDry, signal: stop });
    for await (const [kind, found] of swept) stdout.write(`${kind.name}: ${describe(kind, found, isDry)}\n`);
  });
}

/** The result of a kind as text. */
function describe({ noun, limits }: RetainedKind, found: SweepResult, isDry: boolean): string {
  const { count, fileCount, sizeBytes, excessBytes } = found;
  const files = noun === 'runs' ? `, ${fileCount} files` : '';
  const what =
    limits.maxAgeMs !== null || limits.maxBytes !== null
      ? `${isDry ? 'would remove' : 'removed'} ${count} ${noun}${files}, ${sizeBytes} bytes`
      : 'no limit is set';
  if (excessBytes === 0) return what;
  return `${what}; ${excessBytes} bytes more than there should be are under way, minutes old, or wait for a destination`;
}

/** A run that is to be removed. */
interface Wish {
  /** The run's number, or a trace or invocation id. */
  readonly name: string;
  readonly accountId: number;
  readonly isWithShared: boolean;
}

/** What `run-bridge delete` does. @throws CliError, ConfigurationError, StoreError, DataFolderInUseError */
export async function deleteRun(invocation: Invocation, host: RetentionCommandHost): Promise<ExitCode> {
  const { context, operands, flags, switches } = invocation;
  const wish: Wish = {
    name: readRunName(operands[0] ?? ''),
    accountId: readAccount(flags.account) ?? FIRST_ACCOUNT_ID,
    isWithShared: switches.has('with-shared'),
  };
  const configuration = await readExportConfiguration(invocation);
  if (!switches.has('yes') && !(await isConfirmed(wish, context))) {
    context.stderr.write('run-bridge: nothing was deleted\n');
    return EXIT.failed;
  }
  const ids = await removed(invocation, host, configuration, wish);
  context.stdout.write(`deleted ${counted(ids.length, 'run')}: ${ids.join(', ')}\n`);
  return EXIT.ok;
}

async function removed(
  invocation: Invocation,
  host: RetentionCommandHost,
  configuration: Configuration,
  wish: Wish,
): Promise<readonly number[]> {
  const { context, flags } = invocation;
  if (flags.to !== undefined) {
    const url = bridgeUrl(flags.to);
    return await removedAt(url, wish, bridgeHeaders(context.environment, url));
  }
  refuseElsewhere(configuration);
  const folder = configuration['data-dir'];
  if (configuration.processes === 'several') {
    throw new CliError(EXIT.usage, 'several processes share the database: ask one of them, with --to');
  }
  if (configuration['database-url'] === 'off' && !existsSync(join(folder, STATE_FILE)))
    throw unknownRun(wish.name, folder);
  const lock = take(folder, context);
  if (typeof lock === 'string') {
    const token = { accountId: wish.accountId, name: `run-bridge delete ${wish.name}` };
    return await withBriefToken(host.withState, invocation, token, (headers) => removedAt(lock, wish, headers));
  }
  try {
    return await host.withRetention(configuration, context, { isDry: false }, (retention) =>
      removeRunOnce(configuration, retention, wish),
    );
  } catch (error) {
    if (error instanceof RunRemovalError) throw new CliError(EXIT.failed, error.message, { cause: error });
    if (error instanceof ApiError && error.status === 404) throw unknownRun(wish.name, folder);
    throw error;
  } finally {
    lock.release();
  }
}

/** The folder's lock, or the address of the bridge that has it. @throws DataFolderInUseError */
function take(folder: string, { pid, clock }: ProcessContext): DataFolderLock | string {
  try {
    return takeDataFolder(folder, pid, clock.nowUnixMs());
  } catch (error) {
    return addressOfHolder(error);
  }
}

const removedSchema = z.object({ removed_run_ids: z.array(z.number()) });

/** Asks a bridge. @throws CliError */
async function removedAt(
  baseUrl: string,
  { name, isWithShared }: Wish,
  headers: Readonly<Record<string, string>>,
): Promise<readonly number[]> {
  const suffix = isWithShared ? '?with_shared=true' : '';
  const { removed_run_ids: ids } = await askOfRun(baseUrl, { method: 'DELETE', name, suffix }, headers, removedSchema);
  return ids;
}

/** @throws CliError where nobody can be asked */
async function isConfirmed({ name, isWithShared }: Wish, context: ProcessContext): Promise<boolean> {
  const { stdin, stderr, isStdinTerminal, stop } = context;
  if (!isStdinTerminal) {
    throw new CliError(
      EXIT.usage,
      'deleting a run cannot be undone: confirm it with --yes, since nobody can be asked here',
    );
  }
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const what = isWithShared ? `run ${name} and the runs that share its trace` : `run ${name}`;
    const answer = await lines.question(`Delete ${what} with all data? It cannot be undone. [y/N] `, { signal: stop });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
