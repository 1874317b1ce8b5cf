import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import { Retention } from '../retention/retention.js';
import type { RunTracker } from '../run/run-tracker.js';
import { JsonlRecordLog } from '../sink/jsonl-record-log.js';
import type { State } from '../store/state.js';
import type { AppPurpose } from './app-deps.js';
import type { ArtifactStorage } from './artifact-storage.js';
import { removalsOf, retainedKinds } from './retained-kinds.js';
import { TraceStill } from './trace-still.js';

/** What retention is wired to. */
export interface RetainingDeps {
  readonly state: State;
  readonly storage: ArtifactStorage;
  /** Where runs are written to: a record log in the data folder, or what several processes share. */
  readonly recordLog: object;
  readonly tracker: RunTracker;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * What removes runs and artifacts that are too old or too many.
 * @param purpose only `serve` looks what may go; each start ends what a crash left half
 */
export function retentionOf(configuration: Configuration, purpose: AppPurpose, deps: RetainingDeps): Retention {
  const { recordLog, tracker, clock, logger } = deps;
  const removals = removalsOf(configuration, deps);
  // What several processes have of a run is not in this data folder.
  const hold =
    recordLog instanceof JsonlRecordLog ? new TraceStill(recordLog, tracker) : { whileStill: async () => false };
  const kinds = retainedKinds(configuration, removals, { ...deps, hold });
  return new Retention({ kinds: purpose === 'serve' ? kinds : [], removals, clock, logger });
}
