import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import {
  type ClusterOpening,
  createKafkaProducer,
  DatabaseLease,
  openCluster,
  SEVERAL,
  sharingProblems,
} from '../cluster/feature.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { checkDestinations } from '../config/otlp-destinations.js';
import { packageFile } from '../core/package-file.js';
import { type Exports, type ExportsConfig, loadExports } from '../export/feature.js';
import { openJsonlStream } from '../log/jsonl-output.js';
import type { TraceId } from '../record/telemetry-record.js';
import { folderIdOf, STATE_FILE } from '../storage/data-folder.js';
import { type DataFolderLock, takeDataFolder } from '../storage/data-folder-lock.js';
import type { State } from '../storage/state.js';
import { openOutbox, type WebhookOutbox } from '../webhook/feature.js';
import type { AppDeps } from './app-deps.js';
import { openState, rebuildMissingState, sayIfStateIsNew } from './open-state.js';

/** What is opened before the components are created. */
export interface OpenParts {
  readonly lock: DataFolderLock;
  readonly state: State;
  readonly outbox: WebhookOutbox;
  /** The id of the data folder in the database; empty if the state is in the folder. */
  readonly folderId: string;
  /** The lease of the database; `undefined` if the state is in the data folder, which has a lock. */
  readonly lease: DatabaseLease | undefined;
  readonly stream: Writable | undefined;
  /** The exports; `undefined` if this program exports nothing. */
  readonly exports: Exports | undefined;
  /** The work that several processes share; `undefined` with one process. */
  readonly cluster: ClusterOpening | undefined;
}

/** How a data folder is opened. */
export interface OpenOptions {
  /** Whether this program may be one of several processes. */
  readonly isShareable: boolean;
  /** Whether this program builds and exports runs; one of several processes may leave that to others. */
  readonly isBuilding: boolean;
  /**
   * The traces of an import, which are added when all of their records were read: only these runs are judged, and nobody is notified of them. Default: every run is judged while its records arrive.
   */
  readonly imported?: ReadonlySet<TraceId>;
}

/**
 * Locks the data folder, and opens its state and everything else that is opened only once.
 * @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError
 */
export async function openParts(
  configuration: Configuration,
  deps: AppDeps,
  { isShareable, isBuilding, imported }: OpenOptions,
): Promise<OpenParts> {
  const folder = configuration['data-dir'];
  const isShared = configuration.processes === 'several';
  const sharing = sharingProblems(configuration, isShareable);
  if (sharing.length > 0) throw new ConfigurationError(sharing);
  const lock = takeDataFolder(folder, deps.pid, deps.clock.nowUnixMs());
  let exports: Exports | undefined;
  let state: State | undefined;
  let lease: DatabaseLease | undefined;
  try {
    const { jsonl } = configuration;
    const stream = jsonl === 'off' ? undefined : jsonl === '-' ? deps.stdout : await openJsonlStream(jsonl);
    const folderId = configuration['database-url'] === 'off' ? '' : folderIdOf(folder, deps.random);
    const cluster = await openCluster(configuration, { ...deps, folderId, isBuilding });
    // Only a server listens at the addresses of the configuration.
    const ownHosts = isShareable ? deps.ownHosts : null;
    const logFolder = cluster?.folder ?? folder;
    exports = isBuilding ? await prepareExports(configuration, { ownHosts, logFolder }, deps) : undefined;
    // A custom exporter has to be loaded before its properties are known, so other work is done meanwhile.
    const opening = exports?.destinations.length === 0 ? exports.open() : undefined;
    // It is awaited later; this keeps its rejection from being unhandled until then.
    opening?.catch(() => undefined);
    // Nobody is notified of imported runs.
    const outbox = await openOutbox({ clock: deps.clock, isSilent: imported !== undefined });
    const isElsewhere = configuration['database-url'] !== 'off';
    if (!isElsewhere && !existsSync(join(folder, STATE_FILE))) await rebuildMissingState(folder, deps);
    state = await openState(configuration, deps.clock, outbox, cluster?.fence);
    // Several processes store what they share elsewhere.
    if (!isShared) await sayIfStateIsNew(state, { dataFolder: folder, isElsewhere, logger: deps.logger });
    if (configuration['database-url'] !== 'off') {
      lease = await DatabaseLease.take(isShared ? SEVERAL : folderId, { ...deps, leases: state.leases });
    }
    const problems = await state.scopes.declare(configuration, deps.clock.nowUnixMs());
    if (problems.length > 0) throw new ConfigurationError(problems);
    await opening;
    return { lock, state, outbox, folderId, lease, stream, exports, cluster };
  } catch (error) {
    await exports?.close();
    await lease?.release();
    await state?.close();
    lock.release();
    throw error;
  }
}

/** Closes what was opened, except exports, which are a component. */
export async function closeParts({ lease, state, lock }: Pick<OpenParts, 'lease' | 'state' | 'lock'>): Promise<void> {
  await lease?.release();
  await state.close();
  lock.release();
}

/**
 * Creates the exports of a configuration, to be started later; `undefined` if nothing is exported, which saves memory and time.
 * @throws ConfigurationError if a destination cannot be used
 */
async function prepareExports(
  configuration: Configuration,
  { ownHosts, logFolder }: Pick<ExportsConfig, 'ownHosts' | 'logFolder'>,
  { version, clock, logger, random }: AppDeps,
): Promise<Exports | undefined> {
  const { destinations, environmentDestination } = configuration;
  if (destinations.length === 0 && environmentDestination === undefined) return undefined;
  const addresses = await checkDestinations(configuration, ownHosts);
  const { Exports: Made } = await loadExports();
  const config = { configuration, ownHosts, version, logFolder };
  const exporterEntry = packageFile('dist/exporter-thread.js');
  return new Made(config, { clock, logger, random, createKafkaProducer, exporterEntry }, addresses);
}
