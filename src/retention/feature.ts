import { RunFinder } from '../api/native/run-finder.js';
import type { RetentionLimits } from '../config/retention-settings.js';
import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { JsonlRecordLog } from '../log/jsonl-record-log.js';
import type { PassthroughSegments } from '../log/passthrough-segments.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { State } from '../storage/state.js';
import { Removals } from './removals.js';
import {
  NO_LOCK,
  RetainedArtifacts,
  RetainedPassthrough,
  RetainedTelemetry,
  type TraceLock,
} from './retained-kinds.js';
import { RunRemover } from './run-remover.js';
import { type RetainedKind, Retention, type SweepOptions, type SweepResult, sweepKind } from './sweep.js';
import { TelemetryFolder } from './telemetry-storage.js';

// The door of retention: other folders import only this file.

export type { Removable, RetainedKind, SweepResult } from './sweep.js';

/** The settings of retention. Ages are milliseconds, sizes bytes. */
export interface RetentionConfig {
  readonly 'data-dir': string;
  readonly 'retain-telemetry': RetentionLimits;
  readonly 'retain-artifacts': RetentionLimits;
  readonly 'max-backlog-age': number | 'off';
}

/** Parts of the program that retention uses. */
export interface RetentionHost {
  readonly state: Pick<State, 'retention' | 'cursors'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'usage' | 'removeRun'>>;
  /** The storage of runs that several processes share; `undefined` with one process. */
  readonly sharedFiles: TelemetryStorage | undefined;
  readonly passthrough: PassthroughSegments;
  /** The names of the configured destinations. */
  readonly destinations: readonly string[];
  /** Kinds of database rows that other features keep for a limited time. */
  readonly rows: readonly RetainedKind[];
  readonly clock: Clock;
}

/** What a running server provides: records may arrive while runs are removed. */
export interface WorkingHost extends RetentionHost {
  /** Where runs are written: a record log in the data folder, or what several processes share. */
  readonly recordLog: RecordConsumer & { readonly whileClosed?: JsonlRecordLog['whileClosed'] };
  readonly localRuns: Pick<RunTracker, 'whileReleased'>;
  readonly logger: Logger;
}

/** What a server provides whose visitors may remove runs. */
export interface ServingHost extends WorkingHost {
  readonly state: RetentionHost['state'] & Pick<State, 'catalog' | 'traces'>;
  /** The program's version. */
  readonly version: string;
}

/** The parts of retention: they remove what is too old or too much, and runs on request. */
export interface RetentionParts extends Feature {
  /** Retention of what several processes share; one process at a time runs it. */
  readonly shared: Retention;
  /** Retention of what belongs to this process. */
  readonly local: Retention;
  /** All retained kinds with their limits. */
  readonly kinds: readonly RetainedKind[];
}

/** Creates the retention of a server, which removes expired data and finishes removals that a crash interrupted. */
export function createRetention(config: RetentionConfig, host: ServingHost): RetentionParts {
  const { clock, logger, version } = host;
  const { removals, telemetry, runs, local } = kindsOf(config, host, lockOf(host));
  const remover = () => removerOf(host, { removals, telemetry }, logger);
  return {
    // The composition root starts them, since it knows which of several processes does.
    components: [],
    api: async () => [(await import('./routes.js')).removalRouter(remover())],
    apiPaths: async () => (await import('./routes.js')).REMOVAL_PATHS,
    pages: async () => (await import('./pages.js')).removalPages({ remover: remover(), version }),
    shared: new Retention({ kinds: [...runs, ...host.rows], removals, clock, logger }),
    local: new Retention({ kinds: local, removals: null, clock, logger }),
    kinds: [...runs, ...host.rows, ...local],
  };
}

/** Creates the retention of a command that stores records: it finishes removals that a crash interrupted, and removes expired rows of the host. */
export function createRemovals(config: RetentionConfig, host: WorkingHost): Retention {
  const { rows, clock, logger } = host;
  const { removals } = kindsOf(config, host, lockOf(host));
  return new Retention({ kinds: rows, removals, clock, logger });
}

/**
 * Removes expired data once, kind by kind, from a data folder or database that no other process uses.
 * @throws StoreError, ArtifactError; errors of the file system
 */
export async function* retainOnce(
  config: RetentionConfig,
  host: RetentionHost,
  options: SweepOptions,
): AsyncGenerator<readonly [RetainedKind, SweepResult]> {
  const { removals, runs, local } = kindsOf(config, host, NO_LOCK);
  const isShared = host.sharedFiles !== undefined;
  if (!options.isDry) {
    await removals.hideLeftovers();
    for (const removal of await removals.left()) await removals.end(removal);
    if (!isShared) await host.passthrough.start();
  }
  for (const kind of [...runs, ...host.rows, ...(isShared ? [] : local)]) yield [kind, await sweepKind(kind, options)];
}

/**
 * Removes a run with all its data, from a data folder or database that no other process uses. Runs that share its trace are removed with it if `isWithShared` allows that.
 * @param name the run's number, or a trace or invocation id of one of its commands
 * @returns the numbers of the removed runs
 * @throws ApiError 404; RunRemovalError; StoreError
 */
export function removeRunOnce(
  config: RetentionConfig,
  host: RetentionHost & Pick<ServingHost, 'state' | 'logger'>,
  { accountId, name, isWithShared }: { accountId: number; name: string; isWithShared: boolean },
): Promise<readonly number[]> {
  return removerOf(host, kindsOf(config, host, NO_LOCK), host.logger).remove(accountId, name, isWithShared);
}

/** Creates the kinds with their limits: `runs` are shared by several processes, `local` belong to the data folder of each. */
function kindsOf(config: RetentionConfig, host: RetentionHost, lock: TraceLock) {
  const { state, openArtifacts, passthrough, destinations, clock } = host;
  const storage = host.sharedFiles ?? new TelemetryFolder(config['data-dir']);
  const store = state.retention;
  const removals = new Removals({ store, storage, openArtifacts });
  const nowUnixMs = () => clock.nowUnixMs();
  const { 'retain-telemetry': limits, 'retain-artifacts': artifacts, 'max-backlog-age': backlog } = config;
  const maxBacklogMs = backlog === 'off' ? null : backlog;
  const { cursors } = state;
  const runs = new RetainedTelemetry(limits, {
    store,
    removals,
    storage,
    destinations,
    lock,
    openArtifacts,
    nowUnixMs,
  });
  return {
    removals,
    telemetry: runs,
    runs: [runs, new RetainedArtifacts(artifacts, { store, removals, openArtifacts, nowUnixMs })],
    local: [new RetainedPassthrough(limits, { segments: passthrough, cursors, destinations, maxBacklogMs, nowUnixMs })],
  };
}

function removerOf(
  { state, destinations }: Pick<ServingHost, 'state' | 'destinations'>,
  kinds: Pick<ReturnType<typeof kindsOf>, 'removals' | 'telemetry'>,
  logger: Logger,
): RunRemover {
  return new RunRemover({ ...kinds, finder: new RunFinder(state), store: state.retention, destinations, logger });
}

/** Returns a lock for traces. None is needed with several processes: the database removes only rows of traces that no process owns, and no process can claim them meanwhile. */
function lockOf({ recordLog, localRuns }: WorkingHost): TraceLock {
  const whileClosed = recordLog.whileClosed?.bind(recordLog);
  return whileClosed === undefined ? NO_LOCK : lockClosed(whileClosed, localRuns);
}

/** Returns a lock for traces of a running server: nothing is written to them, and the tracker forgets them. */
function lockClosed(whileClosed: JsonlRecordLog['whileClosed'], tracker: Pick<RunTracker, 'whileReleased'>): TraceLock {
  return {
    whileLocked: (traceIds, action) => whileClosed(traceIds, () => tracker.whileReleased(traceIds, action)),
  };
}
