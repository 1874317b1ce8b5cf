import type { Clock } from '../component/clock.js';
import type { Configuration } from '../config/configuration.js';
import type { Removals } from '../retention/removals.js';
import { RetainedArtifacts } from '../retention/retained-artifacts.js';
import { RetainedForeign } from '../retention/retained-foreign.js';
import type { RetainedKind, RetentionLimits } from '../retention/retained-kind.js';
import { RetainedTelemetry, type TraceHold } from '../retention/retained-telemetry.js';
import type { TelemetryPlace } from '../retention/telemetry-place.js';
import type { ForeignSegments } from '../sink/foreign-segments.js';
import type { State } from '../store/state.js';
import { retainedDeliveries } from '../webhook/feature.js';
import type { ArtifactStorage } from './artifact-storage.js';

/** What retention is made with. */
export interface RetentionParts {
  readonly state: Pick<State, 'db' | 'retention' | 'cursors'>;
  readonly storage: Pick<ArtifactStorage, 'open'>;
  readonly place: TelemetryPlace;
  readonly removals: Removals;
  readonly foreign: ForeignSegments;
  readonly clock: Clock;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  readonly hold: TraceHold;
}

/** Every kind of thing that a configuration keeps for a while, each with its limits. */
export interface RetainedKinds {
  /** Runs, and what lies beside them; of several processes that share them, one removes them. */
  readonly runs: readonly RetainedKind[];
  /** What lies in the database alone, shared as well. */
  readonly rows: readonly RetainedKind[];
  /** What lies in the data folder of each process. */
  readonly own: readonly RetainedKind[];
}

/** The kinds of a configuration. Whoever adds a kind adds it here. */
export function retainedKinds(configuration: Configuration, parts: RetentionParts): RetainedKinds {
  const { state, storage, clock, destinations } = parts;
  const nowUnixMs = () => clock.nowUnixMs();
  const deps = { ...parts, store: state.retention, openArtifacts: () => storage.open(), nowUnixMs };
  const telemetry = limits(configuration['retain-telemetry-age'], configuration['retain-telemetry-size']);
  const backlog = configuration['max-backlog-age'];
  return {
    runs: [
      new RetainedTelemetry(telemetry, deps),
      new RetainedArtifacts(
        limits(configuration['retain-artifacts-age'], configuration['retain-artifacts-size']),
        deps,
      ),
    ],
    rows: [
      retainedDeliveries(limits(configuration['retain-deliveries-age'], configuration['retain-deliveries-size']), {
        state,
        nowUnixMs,
      }),
    ],
    own: [
      new RetainedForeign(telemetry, {
        ...{ segments: parts.foreign, cursors: state.cursors, destinations, nowUnixMs },
        maxBacklogMs: backlog === 'off' ? null : backlog,
      }),
    ],
  };
}

function limits(age: number | 'off', size: number | 'off'): RetentionLimits {
  return { maxAgeMs: age === 'off' ? null : age, maxBytes: size === 'off' ? null : size };
}
