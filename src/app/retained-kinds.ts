import type { Clock } from '../component/clock.js';
import type { Configuration } from '../config/configuration.js';
import { Removals } from '../retention/removals.js';
import { RetainedArtifacts } from '../retention/retained-artifacts.js';
import type { RetainedKind, RetentionLimits } from '../retention/retained-kind.js';
import { RetainedTelemetry, type TraceHold } from '../retention/retained-telemetry.js';
import type { State } from '../store/state.js';
import type { ArtifactStorage } from './artifact-storage.js';

/** What retention is made with. */
export interface RetentionParts {
  readonly state: Pick<State, 'retention'>;
  readonly storage: Pick<ArtifactStorage, 'open'>;
  readonly clock: Clock;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  readonly hold: TraceHold;
}

/** What ends removals of a configuration's folder. */
export function removalsOf(
  configuration: Pick<Configuration, 'data-dir'>,
  { state, storage }: Pick<RetentionParts, 'state' | 'storage'>,
): Removals {
  const dataFolder = configuration['data-dir'];
  return new Removals({ store: state.retention, dataFolder, openArtifacts: () => storage.open() });
}

/** Every kind of thing that a configuration keeps for a while, each with its limits. */
export function retainedKinds(
  configuration: Configuration,
  removals: Removals,
  { state, storage, clock, destinations, hold }: RetentionParts,
): readonly RetainedKind[] {
  const openArtifacts = () => storage.open();
  const deps = { store: state.retention, removals, openArtifacts, nowUnixMs: () => clock.nowUnixMs() };
  const dataFolder = configuration['data-dir'];
  return [
    new RetainedTelemetry(limits(configuration['retain-telemetry-age'], configuration['retain-telemetry-size']), {
      ...deps,
      dataFolder,
      destinations,
      hold,
    }),
    new RetainedArtifacts(limits(configuration['retain-artifacts-age'], configuration['retain-artifacts-size']), deps),
  ];
}

function limits(age: number | 'off', size: number | 'off'): RetentionLimits {
  return { maxAgeMs: age === 'off' ? null : age, maxBytes: size === 'off' ? null : size };
}
