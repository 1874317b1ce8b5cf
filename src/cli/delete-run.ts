import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import type { Configuration } from '../config/configuration.js';
import { counted } from '../core/text.js';
import { RunRemovalError, removeRunOnce } from '../retention/feature.js';
import { type DataFolderLock, STATE_FILE, takeDataFolder } from '../storage/data-folder-lock.js';
import { bridgeHeaders } from './bridge/bridge-headers.js';
import { bridgeUrl } from './bridge/post-otlp.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { addressOfHolder, askOfRun, readAccount, readRunName, unknownRun, withBriefToken } from './own-bridge.js';
import type { ProcessContext } from './process-context.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveWithDestinations } from './resolve-for-command.js';
import { withRetention } from './retain.js';

/** A run that is to be removed. */
interface Wish {
  /** The run's number, or a trace or invocation id. */
  readonly name: string;
  readonly accountId: number;
  readonly isWithShared: boolean;
}

/** What `run-bridge delete` does. @throws CliError, ConfigurationError, StoreError, DataFolderInUseError */
export async function deleteRun(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, flags, switches } = invocation;
  const wish: Wish = {
    name: readRunName(operands[0] ?? ''),
    accountId: readAccount(flags.account),
    isWithShared: switches.has('with-shared'),
  };
  const { configuration, warnings } = await resolveWithDestinations(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  if (!switches.has('yes') && !(await isConfirmed(wish, context))) {
    context.stderr.write('run-bridge: nothing was deleted\n');
    return EXIT.failed;
  }
  const ids = await removed(invocation, configuration, wish);
  context.stdout.write(`deleted ${counted(ids.length, 'run')}: ${ids.join(', ')}\n`);
  return EXIT.ok;
}

async function removed(invocation: Invocation, configuration: Configuration, wish: Wish): Promise<readonly number[]> {
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
    return await withBriefToken(invocation, token, (headers) => removedAt(lock, wish, headers));
  }
  try {
    return await withRetention(configuration, context, { isDry: false }, (host) =>
      removeRunOnce(configuration, host, wish),
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
