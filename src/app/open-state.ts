import { join } from 'node:path';
import type { Clock } from '../component/clock.js';
import type { Configuration } from '../config/configuration.js';
import type { Fence } from '../store/fence.js';
import { openSqliteState } from '../store/open-sqlite-state.js';
import type { State } from '../store/state.js';
import { ANNOUNCING } from '../store/webhook/announcing.js';
import type { Announcing } from '../store/webhook/run-announcer.js';
import { STATE_FILE } from './limits.js';

/**
 * Opens the state where the configuration has it: in PostgreSQL, or in the data folder, which exists.
 * @param announcing how events for webhooks come to be, where it is not as usual
 * @param fence where several processes share the database: which one this is
 * @throws StoreError
 */
export async function openState(
  configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
  clock: Clock,
  announcing: Partial<Announcing> = {},
  fence?: Fence,
): Promise<State> {
  const { 'data-dir': dataFolder, 'database-url': url } = configuration;
  const told = { ...ANNOUNCING, clock, ...announcing };
  if (url === 'off') return await openSqliteState(join(dataFolder, STATE_FILE), undefined, told);
  const { openPostgresState } = await import('../store/open-postgres-state.js');
  return await openPostgresState(url, clock, undefined, told, fence);
}
