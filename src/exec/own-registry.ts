import { join } from 'node:path';
import { openState } from '../app/open-state.js';
import type { ProcessContext } from '../cli/process-context.js';
import type { Configuration } from '../config/configuration.js';
import { silentLogger } from '../core/logger.js';
import { LocalStepRegistry } from '../run/local-step-registry.js';
import { takeDataFolder } from '../storage/take-data-folder.js';
import type { StepTarget } from './exec-target.js';

/**
 * Opens of the data folder what a step is noted in, and nothing else, for this process alone: all that a command without
 * telemetry needs.
 * @throws DataFolderInUseError, StoreError
 */
export async function openOwnRegistry(
  configuration: Configuration,
  { clock, pid }: ProcessContext,
): Promise<StepTarget> {
  const folder = configuration['data-dir'];
  const lock = takeDataFolder(folder, pid, clock.nowUnixMs());
  try {
    const state = await openState(configuration, clock);
    // What is wrong with a declaration is said by whoever opens the whole store.
    await state.places.declare(configuration, clock.nowUnixMs());
    const { executions: store, runs } = state;
    return {
      registry: new LocalStepRegistry({ store, runs, listeners: [], clock, logger: silentLogger }),
      spoolTo: null,
      where: join(folder, 'runs'),
      settle: async () => {},
      finish: async () => null,
      async close() {
        await state.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}
