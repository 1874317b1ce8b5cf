import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openState } from '../app/open-state.js';
import { CliError, EXIT, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { namesIn } from '../core/folders.js';
import { silentLogger } from '../core/logger.js';
import { SPOOL_FOLDER } from '../exec/feature.js';
import { STATE_FILE } from '../storage/data-folder.js';
import type { State } from '../storage/state.js';
import { StoreError } from '../storage/store-error.js';

/** See `CommandHost.askState`. */
export async function askState<Answer>(
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

/** See `WithState`. */
export async function withState<T>(
  invocation: Invocation,
  noun: string,
  body: (state: State) => Promise<T>,
): Promise<T> {
  const { context } = invocation;
  const configuration = await readConfiguration(invocation);
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

/** How long it may take, and then closing, in milliseconds. */
const FINISH_MS = 30_000;
const CLOSE_MS = 2_000;

/** See `CommandHost.finishLeftovers`. If nothing was left, nothing is opened; if another process has the data folder, that one does it. */
export async function finishLeftovers(configuration: Configuration, context: ProcessContext): Promise<void> {
  const left = await namesIn(join(configuration['data-dir'], SPOOL_FOLDER));
  if (left.length === 0) return;
  const [{ openStore }, { appDeps }] = await Promise.all([import('../app.js'), import('./app-deps.js')]);
  try {
    const { program } = await openStore({ ...configuration, jsonl: 'off' }, appDeps(context, silentLogger));
    try {
      await program.start();
      await program.takeInLeftovers(AbortSignal.any([context.stop, AbortSignal.timeout(FINISH_MS)]));
    } finally {
      await program.shutdown(AbortSignal.timeout(CLOSE_MS));
    }
  } catch {
    // Existing data is shown unchanged; the next exec or serve reports the problem.
  }
}
