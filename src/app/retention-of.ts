import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import type { TraceId } from '../record/ids.js';
import { NO_HOLD } from '../retention/no-hold.js';
import { Removals } from '../retention/removals.js';
import type { TraceHold } from '../retention/retained-telemetry.js';
import { Retention } from '../retention/retention.js';
import { TelemetryFolder } from '../retention/telemetry-folder.js';
import type { TelemetryPlace } from '../retention/telemetry-place.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { ForeignSegments } from '../sink/foreign-segments.js';
import { JsonlRecordLog } from '../sink/jsonl-record-log.js';
import type { State } from '../store/state.js';
import type { AppPurpose } from './app-deps.js';
import type { ArtifactStorage } from './artifact-storage.js';
import { retainedKinds } from './retained-kinds.js';

/** What retention is wired to. */
export interface RetainingDeps {
  readonly state: State;
  readonly storage: ArtifactStorage;
  /** Where runs are written to: a record log in the data folder, or what several processes share. */
  readonly recordLog: object;
  /** Where files of runs are that several processes share. */
  readonly sharedPlace: TelemetryPlace | undefined;
  readonly foreign: ForeignSegments;
  readonly tracker: RunTracker;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What removes things that are too old or too many. */
export interface Retaining {
  /** Of several processes, one at a time runs it. */
  readonly shared: Retention;
  /** What each process has for itself. */
  readonly own: Retention;
}

/**
 * What removes what is too old or too much.
 * @param purpose only `serve` looks which runs may go, an import for nothing; each start ends what a crash left half
 */
export function retentionOf(configuration: Configuration, purpose: AppPurpose, deps: RetainingDeps): Retaining {
  const { state, storage, recordLog, tracker, clock, logger } = deps;
  const place = deps.sharedPlace ?? new TelemetryFolder(configuration['data-dir']);
  const removals = new Removals({ store: state.retention, place, openArtifacts: () => storage.open() });
  // Of several processes: the database removes only rows of traces that none of them has, and lets none take one meanwhile.
  const hold = recordLog instanceof JsonlRecordLog ? new TraceStill(recordLog, tracker) : NO_HOLD;
  const kinds = retainedKinds(configuration, { ...deps, place, removals, hold });
  const looked = {
    serve: { shared: [...kinds.runs, ...kinds.rows], own: kinds.own },
    follow: { shared: kinds.rows, own: [] },
    import: { shared: [], own: [] },
  }[purpose];
  return {
    shared: new Retention({ kinds: looked.shared, removals, clock, logger }),
    own: new Retention({ kinds: looked.own, removals: null, clock, logger }),
  };
}

/** Keeps traces still in a program at work: nothing is written to them, and the tracker knows nothing of them. */
export class TraceStill implements TraceHold {
  constructor(
    private readonly recordLog: Pick<JsonlRecordLog, 'whileClosed'>,
    private readonly tracker: Pick<RunTracker, 'release'>,
  ) {}

  whileStill(traceIds: readonly TraceId[], action: () => Promise<boolean>): Promise<boolean> {
    return this.recordLog.whileClosed(traceIds, async () => {
      const isFree = traceIds.every((traceId) => this.tracker.release(traceId));
      return isFree && (await action());
    });
  }
}
