import { RunFinder } from '../api/own/run-finder.js';
import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { ForeignSegments } from '../log/foreign-segments.js';
import type { JsonlRecordLog } from '../log/jsonl-record-log.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { State } from '../storage/state.js';
import { Removals } from './removals.js';
import { NO_HOLD, RetainedArtifacts, RetainedForeign, RetainedTelemetry, type TraceHold } from './retained-kinds.js';
import { RunRemover } from './run-remover.js';
import {
  type RetainedKind,
  Retention,
  type RetentionLimits,
  type SweepOptions,
  type SweepResult,
  sweepKind,
} from './sweep.js';
import { TelemetryBucket, type TelemetryBucketDeps, TelemetryFolder } from './telemetry-storage.js';

// The door of retention: no other folder imports anything else of this one.

export type { Removable, RetainedKind, RetentionLimits, SweepResult } from './sweep.js';

/** Settings that retention goes by. Ages are milliseconds, sizes bytes. */
export interface RetentionConfig {
  readonly 'data-dir': string;
  readonly 'retain-telemetry-age': number | 'off';
  readonly 'retain-telemetry-size': number | 'off';
  readonly 'retain-artifacts-age': number | 'off';
  readonly 'retain-artifacts-size': number | 'off';
  readonly 'max-backlog-age': number | 'off';
}

/** What retention needs of the program. */
export interface RetentionHost {
  readonly state: Pick<State, 'retention' | 'cursors'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage' | 'removeRun'>>;
  /** Where files of runs are that several processes share. */
  readonly sharedFiles: TelemetryStorage | undefined;
  readonly foreign: ForeignSegments;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  /** What others keep for a while in the database. */
  readonly rows: readonly RetainedKind[];
  readonly clock: Clock;
}

/** For a running server: records may arrive while runs are removed. */
export interface WorkingHost extends RetentionHost {
  /** Where runs are written to: a record log in the data folder, or what several processes share. */
  readonly recordLog: RecordConsumer & { readonly whileClosed?: JsonlRecordLog['whileClosed'] };
  readonly ownRuns: Pick<RunTracker, 'whileReleased'>;
  readonly logger: Logger;
}

/** A running server, whose visitors may remove runs. */
export interface ServingHost extends WorkingHost {
  readonly state: RetentionHost['state'] & Pick<State, 'catalog' | 'traces'>;
  /** The program's version. */
  readonly version: string;
}

/** What removes what is too old or too much, and runs that somebody wants removed. */
export interface RetentionParts extends Feature {
  /** Of several processes, one at a time runs it. */
  readonly shared: Retention;
  /** What each process has for itself. */
  readonly own: Retention;
  /** All that is kept, with its limits. */
  readonly kinds: readonly RetainedKind[];
}

/** Retention of a server: removes expired data, and finishes removals that a crash interrupted. */
export function createRetention(config: RetentionConfig, host: ServingHost): RetentionParts {
  const { clock, logger, version } = host;
  const { removals, telemetry, runs, own } = kindsOf(config, host, holdOf(host));
  const remover = () => removerOf(host, { removals, telemetry }, logger);
  return {
    // Started by the composition root, which knows which of several processes does.
    components: [],
    api: async () => [(await import('./routes.js')).removalRouter(remover())],
    apiPaths: async () => (await import('./routes.js')).REMOVAL_PATHS,
    pages: async () => (await import('./pages.js')).removalPages({ remover: remover(), version }),
    shared: new Retention({ kinds: [...runs, ...host.rows], removals, clock, logger }),
    own: new Retention({ kinds: own, removals: null, clock, logger }),
    kinds: [...runs, ...host.rows, ...own],
  };
}

/** Retention of a command that keeps records: finishes removals that a crash interrupted, and removes expired rows of the host alone. */
export function createRemovals(config: RetentionConfig, host: WorkingHost): Retention {
  const { rows, clock, logger } = host;
  const { removals } = kindsOf(config, host, holdOf(host));
  return new Retention({ kinds: rows, removals, clock, logger });
}

/**
 * Removes expired data at once, kind by kind, from a data folder or database that no other process uses.
 * @throws StoreError, ArtifactError; errors of the file system
 */
export async function* retainOnce(
  config: RetentionConfig,
  host: RetentionHost,
  options: SweepOptions,
): AsyncGenerator<readonly [RetainedKind, SweepResult]> {
  const { removals, runs, own } = kindsOf(config, host, NO_HOLD);
  const isShared = host.sharedFiles !== undefined;
  if (!options.isDry) {
    await removals.takeUp();
    for (const removal of await removals.left()) await removals.end(removal);
    if (!isShared) await host.foreign.start();
  }
  for (const kind of [...runs, ...host.rows, ...(isShared ? [] : own)]) yield [kind, await sweepKind(kind, options)];
}

/**
 * Removes a run with all its data, and other runs with it where they share its trace and `isWithShared` allows that, from a data
 * folder or database that no other process uses.
 * @param name the run's number, or a trace or invocation id of one of its commands
 * @returns the numbers of the runs that were removed
 * @throws ApiError 404; RunRemovalError; StoreError
 */
export function removeRunOnce(
  config: RetentionConfig,
  host: RetentionHost & Pick<ServingHost, 'state' | 'logger'>,
  { accountId, name, isWithShared }: { accountId: number; name: string; isWithShared: boolean },
): Promise<readonly number[]> {
  return removerOf(host, kindsOf(config, host, NO_HOLD), host.logger).remove(accountId, name, isWithShared);
}

/** Where the files of runs are that several processes share. */
export function sharedTelemetry(deps: TelemetryBucketDeps): TelemetryStorage {
  return new TelemetryBucket(deps);
}

/** The limits of a kind, as settings have them. */
export function retentionLimits(age: number | 'off', size: number | 'off'): RetentionLimits {
  return { maxAgeMs: age === 'off' ? null : age, maxBytes: size === 'off' ? null : size };
}

/** Kinds with their limits: `runs` are shared by several processes, `own` belong to the data folder of each. */
function kindsOf(config: RetentionConfig, host: RetentionHost, hold: TraceHold) {
  const { state, openArtifacts, foreign, destinations, clock } = host;
  const place = host.sharedFiles ?? new TelemetryFolder(config['data-dir']);
  const store = state.retention;
  const removals = new Removals({ store, place, openArtifacts });
  const nowUnixMs = () => clock.nowUnixMs();
  const limits = retentionLimits(config['retain-telemetry-age'], config['retain-telemetry-size']);
  const artifacts = retentionLimits(config['retain-artifacts-age'], config['retain-artifacts-size']);
  const backlog = config['max-backlog-age'];
  const maxBacklogMs = backlog === 'off' ? null : backlog;
  const { cursors } = state;
  const runs = new RetainedTelemetry(limits, { store, removals, place, destinations, hold, openArtifacts, nowUnixMs });
  return {
    removals,
    telemetry: runs,
    runs: [runs, new RetainedArtifacts(artifacts, { store, removals, openArtifacts, nowUnixMs })],
    own: [new RetainedForeign(limits, { segments: foreign, cursors, destinations, maxBacklogMs, nowUnixMs })],
  };
}

function removerOf(
  { state, destinations }: Pick<ServingHost, 'state' | 'destinations'>,
  kinds: Pick<ReturnType<typeof kindsOf>, 'removals' | 'telemetry'>,
  logger: Logger,
): RunRemover {
  return new RunRemover({ ...kinds, finder: new RunFinder(state), store: state.retention, destinations, logger });
}

/** With several processes: the database removes only rows of traces that no process owns, and no process can claim them meanwhile. */
function holdOf({ recordLog, ownRuns }: WorkingHost): TraceHold {
  const whileClosed = recordLog.whileClosed?.bind(recordLog);
  return whileClosed === undefined ? NO_HOLD : holdClosed(whileClosed, ownRuns);
}

/** Locks traces in a running server: nothing is written to them, and the tracker forgets them. */
function holdClosed(whileClosed: JsonlRecordLog['whileClosed'], tracker: Pick<RunTracker, 'whileReleased'>): TraceHold {
  return {
    whileStill: (traceIds, action) => whileClosed(traceIds, () => tracker.whileReleased(traceIds, action)),
  };
}
