import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { ProcessIdentity } from '../cluster/process-identity.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { missingForHooks } from '../config/missing-for-hooks.js';
import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import { packageFile } from '../core/package-file.js';
import { pause } from '../core/pause.js';
import { reasonOf } from '../core/reason-of.js';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../core/retry-policy.js';
import { whenAborted } from '../core/when-aborted.js';
import type { DestinationStatus } from '../export/destination.js';
import type { Exports, ExportThread, ExportThreadSources } from '../export/thread/export-thread.js';
import type { ThreadCluster } from '../export/thread/messages.js';
import { Appended } from '../log/appended.js';
import { openJsonlStream } from '../log/jsonl-output.js';
import { PublicSchema } from '../otlp/public-schema.js';
import type { TraceId } from '../record/ids.js';
import type { ForeignBatch } from '../record/record-batch.js';
import type { RunEvent } from '../run/run-event.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { DataFolderLock } from '../storage/data-folder-lock.js';
import type { State } from '../storage/state.js';
import { takeDataFolder } from '../storage/take-data-folder.js';
import { openOutbox, type WebhookOutbox } from '../webhook/feature.js';
import type { AppDeps, AppPurpose } from './app-deps.js';
import type { Cluster } from './cluster.js';
import { clusterFolder } from './cluster-folder.js';
import { DatabaseLease, SEVERAL } from './database-lease.js';
import { folderIdOf } from './folder-id.js';
import { STATE_FILE } from './limits.js';
import { openState, sayIfStateIsNew } from './open-state.js';
import { checkDestinations } from './otlp-destinations.js';
import { sharingProblems } from './sharing-problems.js';

/** What is opened before the components are made. */
export interface OpenParts {
  readonly lock: DataFolderLock;
  readonly state: State;
  readonly outbox: WebhookOutbox;
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
    // Nobody is notified of what an import brings.
    const outbox = await openOutbox({ clock: deps.clock, isSilent: purpose === 'import' });
    const isNew = configuration['database-url'] !== 'off' || !existsSync(join(folder, STATE_FILE));
    state = await openState(configuration, deps.clock, outbox, identity);
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
    return { lock, state, outbox, folderId, lease, stream, exports, schema, hostedRuns, cluster };
  } catch (error) {
    await exporting?.close();
    await lease?.release();
    await state?.close();
    lock.release();
    throw error;
  }
}

/** What exports are opened with. */
export interface ExportOpening {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Addresses and names of this machine, to notice a destination that is the program itself. */
  readonly ownHosts: readonly string[];
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
  /** Where several processes share the database: this one. */
  readonly cluster: () => ThreadCluster | null;
}

/** Exports that are being opened. */
export interface OpeningExports {
  /** To be called once, with the open state. `undefined` where nothing is exported. */
  with(state: State): Promise<LateThread | undefined>;
  /** Ends what was begun where it never came to that. */
  close(): Promise<void>;
}

/**
 * Begins to open the destinations of a configuration in a thread of their own. Where it is told before what they are, and
 * that is `isLate`, nobody waits for the thread.
 * @throws ConfigurationError when one cannot be used.
 */
export async function openExportsLate(
  configuration: Configuration,
  deps: ExportOpening,
  isLate: boolean,
): Promise<OpeningExports> {
  const places = isLate ? await checkDestinations(configuration, deps.ownHosts) : undefined;
  const open = await threadOpener(configuration, deps);
  const begun = places === undefined ? open?.() : undefined;
  // Awaited later; until then its failure is nobody's.
  begun?.catch(() => undefined);
  let late: LateThread | undefined;
  return {
    async with({ cursors }) {
      if (places === undefined || open === undefined) return begun;
      const { clock, logger, random } = deps;
      const retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, random);
      late = new LateExports(places, { open, cursors, clock, logger, retryPolicy });
      return late;
    },
    async close() {
      const thread = late ?? (await begun?.catch(() => undefined));
      await thread?.close();
    },
  };
}

/** What starts the thread that exports; `undefined` where nothing is exported, which saves its memory and time. */
async function threadOpener(
  configuration: Configuration,
  { clock, logger, ownHosts, version, random, cluster }: ExportOpening,
): Promise<(() => Promise<LateThread>) | undefined> {
  const { destinations, environmentDestination } = configuration;
  if (destinations.length === 0 && environmentDestination === undefined) return undefined;
  const { ExportThread } = await import('../export/thread/export-thread.js');
  return () => {
    const retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, random);
    const entry = packageFile('dist/export-thread.js');
    return ExportThread.open(
      { configuration, ownHosts, version, cluster: cluster() },
      { entry, clock, logger, retryPolicy },
    );
  };
}

/** What late exports work with. */
export interface LateExportsDeps {
  /** Starts the thread. @throws when that fails; it is tried again. */
  open(): Promise<LateThread>;
  readonly cursors: Pick<CursorStore, 'register' | 'saveForeign'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait before the thread is started again. */
  readonly retryPolicy: RetryPolicy;
}

/** What is used of the thread that exports. */
export type LateThread = Exports & Pick<ExportThread, 'connect' | 'close' | 'rename'>;

/** The last news of a run that came before the thread. */
interface News {
  readonly lengthBytes: number;
  readonly event: RunEvent | undefined;
}

/** Runs whose news is kept; of the one longest ago the thread hears when it is started the next time. */
const MAX_RUNS = 100_000;

/**
 * Exports whose thread is started when the program is about to be ready, and not waited for: loading its code takes longer
 * than all the rest of a start. Until it is there, the last news of each run is kept for it; the records are on disk.
 * Destinations count as registered from the start, so that each gets what comes meanwhile.
 */
export class LateExports implements LateThread {
  readonly name = 'exports';
  private thread: LateThread | undefined;
  private sources: ExportThreadSources | undefined;
  private readonly missed = new Map<TraceId, News>();
  private opening: Promise<void> = Promise.resolve();
  private readonly stop = new AbortController();

  constructor(
    readonly destinations: Exports['destinations'],
    private readonly deps: LateExportsDeps,
  ) {}

  connect(sources: ExportThreadSources): void {
    this.sources = sources;
  }

  async start(): Promise<void> {
    for (const [name] of this.destinations) await this.register(name);
    this.opening = this.openUntilStopped();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.opening;
    await this.thread?.close();
  }

  onAppended(appended: Appended): void {
    if (this.thread !== undefined) this.thread.onAppended(appended);
    else this.note(appended.traceId, appended.lengthBytes);
  }

  drop(traceId: TraceId): void {
    this.missed.delete(traceId);
    this.thread?.drop(traceId);
  }

  collectGarbage(): void {
    this.thread?.collectGarbage();
  }

  /** Where several processes share the database: this one goes on under another id. */
  rename(processId: string): void {
    this.thread?.rename(processId);
  }

  onForeign(batches: readonly ForeignBatch[]): void {
    this.thread?.onForeign(batches);
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    if (this.thread !== undefined) await this.thread.onRunEvent(event);
    else this.note(event.run.traceId, event.run.logBytes, event);
  }

  statuses(): readonly DestinationStatus[] {
    return this.thread?.statuses() ?? [];
  }

  async flush(deadline: AbortSignal): Promise<boolean> {
    await this.openedBy(deadline);
    return (await this.thread?.flush(deadline)) ?? false;
  }

  /** A thread that is just being started is waited for: it sends what there is, as at any other end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    await this.openedBy(deadline);
    await this.thread?.shutdown(deadline);
  }

  private async register(name: string): Promise<void> {
    const { clock, cursors } = this.deps;
    const nowUnixMs = clock.nowUnixMs();
    if ((await cursors.register(name, nowUnixMs)) !== nowUnixMs) return;
    // What other services sent before is not for a destination that is new.
    const end = await this.sources?.foreign.end();
    if (end !== undefined) await cursors.saveForeign(name, end);
  }

  private async openUntilStopped(): Promise<void> {
    const { clock, logger, retryPolicy } = this.deps;
    for (let attempt = 1; !this.stop.signal.aborted; attempt += 1) {
      try {
        await this.begin();
        return;
      } catch (error) {
        const delayMs = retryPolicy.delayMs(attempt, null);
        logger.error(
          { error: reasonOf(error), delayMs },
          'the thread that exports could not be started; it is tried again, and nothing is lost meanwhile',
        );
        await pause(clock, delayMs, this.stop.signal);
      }
    }
  }

  private async begin(): Promise<void> {
    const thread = await this.deps.open();
    if (this.sources !== undefined) thread.connect(this.sources);
    await thread.start();
    this.handOver(thread);
  }

  /** From here on the thread hears of everything itself. */
  private handOver(thread: LateThread): void {
    this.thread = thread;
    for (const [traceId, { lengthBytes, event }] of this.missed) {
      // Without the lines, which it reads from the log.
      thread.onAppended(new Appended(traceId, [], lengthBytes));
      if (event !== undefined) void thread.onRunEvent(event);
    }
    this.missed.clear();
    thread.onForeign([]);
  }

  private note(traceId: TraceId, lengthBytes: number, event = this.missed.get(traceId)?.event): void {
    this.missed.delete(traceId);
    this.missed.set(traceId, { lengthBytes, event });
    if (this.missed.size <= MAX_RUNS) return;
    const [oldest] = this.missed.keys();
    if (oldest !== undefined) this.missed.delete(oldest);
  }

  private async openedBy(deadline: AbortSignal): Promise<void> {
    await Promise.race([this.opening, whenAborted(deadline)]);
  }
}
