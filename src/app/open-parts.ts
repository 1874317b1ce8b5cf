import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { ProcessIdentity } from '../cluster/process-identity.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { missingForHooks } from '../config/missing-for-hooks.js';
import { PublicSchema } from '../schema/public-schema.js';
import { openJsonlStream } from '../sink/jsonl-output.js';
import type { DataFolderLock } from '../store/data-folder-lock.js';
import type { State } from '../store/state.js';
import { takeDataFolder } from '../store/take-data-folder.js';
import type { AppDeps, AppPurpose } from './app-deps.js';
import type { Cluster } from './cluster.js';
import { clusterFolder } from './cluster-folder.js';
import { DatabaseLease, SEVERAL } from './database-lease.js';
import { folderIdOf } from './folder-id.js';
import type { LateThread } from './late-exports.js';
import { STATE_FILE } from './limits.js';
import { type OpeningExports, openExportsLate } from './open-exports-late.js';
import { openState, sayIfStateIsNew } from './open-state.js';
import { sharingProblems } from './sharing-problems.js';
import { WebhookBell } from './webhook-bell.js';

/** What is opened before the components are made. */
export interface OpenParts {
  readonly lock: DataFolderLock;
  readonly state: State;
  readonly bell: WebhookBell;
  /** By what the data folder has its database; empty where the state is in the folder itself. */
  readonly folderId: string;
  /** `undefined` where the state is in the data folder, which has a lock. */
  readonly lease: DatabaseLease | undefined;
  readonly stream: Writable | undefined;
  /** `undefined` where nothing is exported. */
  readonly exports: LateThread | undefined;
  readonly schema: PublicSchema;
  /** What brings in hosted runs; loaded where webhooks ask for it. */
  readonly hostedRuns: typeof import('./hosted-runs.js') | undefined;
  /** Where several processes share the work: this one, and what makes its parts. */
  readonly cluster: { readonly identity: ProcessIdentity; readonly make: typeof Cluster } | undefined;
}

/**
 * Takes the data folder and opens its state, and what else is opened only once.
 * @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError
 */
export async function openParts(configuration: Configuration, deps: AppDeps, purpose: AppPurpose): Promise<OpenParts> {
  const folder = configuration['data-dir'];
  const isShared = configuration.processes === 'several';
  const sharing = isShared ? sharingProblems(configuration, purpose === 'serve') : [];
  if (sharing.length > 0) throw new ConfigurationError(sharing);
  const lock = takeDataFolder(folder, deps.pid, deps.clock.nowUnixMs());
  let exporting: OpeningExports | undefined;
  let state: State | undefined;
  let lease: DatabaseLease | undefined;
  try {
    const { jsonl } = configuration;
    const stream = jsonl === 'off' ? undefined : jsonl === '-' ? deps.stdout : await openJsonlStream(jsonl);
    const folderId = configuration['database-url'] === 'off' ? '' : folderIdOf(folder, deps.random);
    const identity = isShared ? new ProcessIdentity(folderId, () => randomUUID()) : undefined;
    const forThread = () =>
      identity === undefined
        ? null
        : { fence: { processId: identity.processId, folderId }, folder: clusterFolder(configuration) };
    exporting = await openExportsLate(configuration, { ...deps, cluster: forThread }, purpose === 'serve');
    // Both are done while the other thread starts, which takes as long.
    const schema = PublicSchema.load();
    const bell = new WebhookBell();
    // What an import brings is no news.
    const announcing = { isSilent: purpose === 'import', onEvents: bell.ring };
    const isNew = configuration['database-url'] !== 'off' || !existsSync(join(folder, STATE_FILE));
    state = await openState(configuration, deps.clock, announcing, identity);
    // Several processes have what they share elsewhere.
    if (!isShared) await sayIfStateIsNew(state, { dataFolder: folder, isNew, logger: deps.logger });
    if (configuration['database-url'] !== 'off') {
      lease = await DatabaseLease.take(state.leases, isShared ? SEVERAL : folderId, deps);
    }
    const problems = await state.places.declare(configuration, deps.clock.nowUnixMs());
    if (problems.length > 0) throw new ConfigurationError(problems);
    const exports = await exporting.with(state);
    const hasHooks = purpose === 'serve' && missingForHooks(configuration).length === 0;
    const hostedRuns = hasHooks ? await import('./hosted-runs.js') : undefined;
    const cluster = identity && { identity, make: (await import('./cluster.js')).Cluster };
    return { lock, state, bell, folderId, lease, stream, exports, schema, hostedRuns, cluster };
  } catch (error) {
    await exporting?.close();
    await lease?.release();
    await state?.close();
    lock.release();
    throw error;
  }
}
