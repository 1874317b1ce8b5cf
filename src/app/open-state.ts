import { join } from 'node:path';
import type { Clock } from '../component/clock.js';
import type { Configuration } from '../config/configuration.js';
import { openSqliteState } from '../store/open-sqlite-state.js';
import type { State } from '../store/state.js';
import { STATE_FILE } from './limits.js';

/**
 * Opens the state where the configuration has it: in PostgreSQL, or in the data folder, which exists.
 * @throws StoreError
 */
export async function openState(
  configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
  clock: Clock,
): Promise<State> {
  const { 'data-dir': dataFolder, 'database-url': url } = configuration;
  if (url === 'off') return await openSqliteState(join(dataFolder, STATE_FILE));
  const { openPostgresState } = await import('../store/open-postgres-state.js');
  return await openPostgresState(url, clock);
}
