import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { STATE_FILE } from '../app/limits.js';
import { openState } from '../app/open-state.js';
import type { Clock } from '../component/clock.js';
import type { Configuration } from '../config/configuration.js';
import type { State } from '../store/state.js';
import { StoreError } from '../store/store-error.js';

/**
 * Asks the state of a data folder what no other file tells, such as numbers of runs. A bridge may be at work on it.
 * @returns `undefined` where there is no state, or none that can be read: no command that reads the folder fails for that.
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
