import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openState } from '../app/open-state.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { STATE_FILE } from '../storage/data-folder-lock.js';
import type { State } from '../storage/state.js';
import { StoreError } from '../storage/store-error.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveForCommand } from './resolve-for-command.js';

/**
 * Reads from the state of a data folder what no other file contains, for example ids of runs. A bridge may be running on it.
 * @returns `undefined` if there is no readable state: commands that read the folder do not fail for that.
 */
export async function askFolderState<Answer>(
  configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
  clock: Clock,
  ask: (state: State) => Promise<Answer>,
): Promise<Answer | undefined> {
  const isElsewhere = configuration['database-url'] !== 'off';
  if (!isElsewhere && !existsSync(join(configuration['data-dir'], STATE_FILE))) return undefined;
  try {
    const state = await openState(configuration, clock);
    try {
      return await ask(state);
    } finally {
      await state.close();
    }
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

/**
 * Opens the state that a command line names, and closes it after `body`. Creates nothing: a mistyped folder
 * stays missing.
 * @param noun the kind of data, for the error
 * @throws CliError, ConfigurationError, StoreError
 */
export async function withState(
  invocation: Invocation,
  noun: string,
  body: (state: State) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { context } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseElsewhere(configuration);
  const { 'data-dir': folder, 'database-url': url } = configuration;
  if (url === 'off' && !existsSync(join(folder, STATE_FILE))) {
    throw new CliError(EXIT.failed, `${folder} has no ${noun}: nothing has been stored there; is --data-dir right?`);
  }
  const state = await openState(configuration, context.clock);
  try {
    return await body(state);
  } finally {
    await state.close();
  }
}
