import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import { type Component, Lifecycle } from '../core/lifecycle.js';
import { createLeftovers, type Leftovers } from '../exec/feature.js';
import type { ResendFeature } from '../export/feature.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import type { RunTracker } from '../run/run-tracker.js';
import { type ArtifactSink, StoreArtifactSink } from '../storage/artifacts.js';
import type { State } from '../storage/state.js';
import type { WebServer } from '../web/web-server.js';
import type { Host } from './host.js';
import type { Ports } from './ports.js';

/** Components that features add to those of a host; `inOrder` decides when each list is started. */
export interface AddedComponents {
  readonly retention: readonly Component[];
  readonly webhooks: readonly Component[];
  /** The run model. Default: the host's; an import starts it after all records were read. */
  readonly runs?: readonly Component[];
  /** The sources of records. */
  readonly sources: readonly Component[];
}

/** Returns the components of a host and of features, destinations first: whatever receives records starts before their source and ends after it. */
function inOrder({ components, disk }: Host, added: AddedComponents): readonly Component[] {
  return [
    ...components.storage,
    ...added.retention,
    ...components.rowBackup,
    ...components.exports,
    ...added.webhooks,
    ...components.projections,
    ...(added.runs ?? components.runs),
    ...components.recordLog,
    disk,
    ...added.sources,
  ];
}

/** How often a run that is being judged is checked, in milliseconds. */
const SETTLE_POLL_MS = 20;

/** A program that works on a data folder. */
export class Program {
  /** Stores records; resolves when they are durable. */
  readonly consumer: RecordConsumer;
  readonly reader: RecordLogReader;
  readonly tracker: RunTracker;
  /** Registers the steps of runs, for commands under this program. */
  readonly registry: LocalStepRegistry;
  /** Stores artifacts of steps. */
  readonly artifacts: ArtifactSink;
  readonly state: State;
  private readonly lifecycle: Lifecycle;

  /** @param leftovers imports what commands left behind */
  constructor(
    private readonly host: Host,
    private readonly leftovers: Leftovers,
    consumer: RecordConsumer,
    added: AddedComponents,
  ) {
    this.consumer = consumer;
    this.reader = host.localReader;
    this.tracker = host.localRuns;
    this.registry = host.registry;
    this.artifacts = new StoreArtifactSink(host.openArtifacts);
    this.state = host.state;
    this.lifecycle = new Lifecycle(inOrder(host, added));
  }

  /** The name and address of each destination. */
  get destinations(): readonly (readonly [string, string])[] {
    return this.host.exports?.destinations ?? [];
  }

  /** Starts all components. @throws ListenError */
  async start(): Promise<void> {
    try {
      await this.lifecycle.start();
    } catch (error) {
      await this.host.close();
      throw error;
    }
    // Loading them earlier would make the start longer.
    this.host.exports?.begin();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    try {
      await this.lifecycle.shutdown(deadline);
    } finally {
      await this.host.close();
    }
  }

  /** Imports the folder that a command left in another place. @returns the number of its records @throws DataFolderInUseError */
  takeInCommand(folder: string): Promise<number> {
    return this.leftovers.takeIn(folder);
  }

  /** The traces whose leftover records were imported so far. */
  get leftTraceIds(): Iterable<TraceId> {
    return this.leftovers.traceIds;
  }

  /** Waits until leftovers of commands are imported and their runs have verdicts and files. */
  async takeInLeftovers(deadline: AbortSignal): Promise<void> {
    await this.leftovers.looked(deadline);
    await this.settled(this.leftovers.traceIds, deadline);
  }

  /** Waits until these runs have verdicts and files. */
  async settled(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<void> {
    for (const traceId of traceIds) {
      while (!deadline.aborted && !(await this.tracker.isSettled(traceId))) {
        await pause(this.host.clock, SETTLE_POLL_MS, deadline);
      }
    }
  }

  /** Waits for exports. @returns whether destinations accepted everything before the deadline */
  async exported(deadline: AbortSignal): Promise<boolean> {
    return (await this.host.exports?.flush(deadline)) ?? true;
  }
}

/** A program that listens on ports. */
export class Server {
  constructor(
    readonly program: Program,
    /** Its ports; addresses are known after the start. */
    readonly ports: Ports,
    private readonly host: Pick<Host, 'state' | 'clock'>,
  ) {}

  /**
   * Creates a token with all permissions unless there has been a token before.
   * @returns the path of its file; `null` if there has been a token
   * @throws StoreError; errors of the file system
   */
  async makeFirstToken(dataFolder: string): Promise<string | null> {
    const { makeFirstToken } = await import('../api/first-token.js');
    return makeFirstToken(this.host.state.tokens, dataFolder, this.host.clock);
  }

  /**
   * Creates a link that signs in to the pages once.
   * @returns its URL
   * @throws StoreError
   */
  async makeSignInLink(page?: string): Promise<string> {
    const { makeSignInLink } = await import('../api/sign-in-links.js');
    return `${this.ports.signInUrl ?? this.ports.webUrl}${await makeSignInLink(this.host.state.tokens, this.host.clock, page)}`;
  }
}

/** A program that builds runs for other processes and only answers requests about itself. */
export interface BuildServer {
  readonly program: Program;
  readonly web: WebServer;
}

/** How long the end of a command waits for webhooks, in milliseconds; the next start sends the rest. */
const WEBHOOK_FLUSH_MS = 10_000;

/** A program to which a command passes records while it runs. */
export class Store {
  constructor(
    readonly program: Program,
    private readonly webhooks: { flush(deadline: AbortSignal): Promise<void> },
    /** Exports runs of the data folder again. */
    readonly resender: ResendFeature['resender'],
  ) {}

  /**
   * Waits after the end of a command for the verdicts and files of its runs, for the import of earlier commands' leftovers, and for exports, until `deadline`; the next start continues.
   * @returns whether everything was exported
   */
  async finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean> {
    await this.program.settled(traceIds, deadline);
    await this.program.takeInLeftovers(deadline);
    await this.webhooks.flush(AbortSignal.any([deadline, AbortSignal.timeout(WEBHOOK_FLUSH_MS)]));
    return await this.program.exported(deadline);
  }
}

/** A program that imports records and judges their runs after all were read. */
export class Import {
  /** @param traceIds receives the traces to be judged; the host reads it */
  constructor(
    readonly program: Program,
    private readonly traceIds: Set<TraceId>,
  ) {}

  /**
   * Judges the runs after all records were read, writes their Parquet and exports them, for at most `exportMs`; the next `serve` continues.
   * @param stop ends it at once
   * @returns whether everything was exported
   */
  async finish(traceIds: Iterable<TraceId>, stop: AbortSignal, exportMs: number): Promise<boolean> {
    const { program } = this;
    for (const traceId of [...traceIds, ...program.leftTraceIds]) this.traceIds.add(traceId);
    await program.tracker.start();
    await program.settled(this.traceIds, stop);
    const deadline = AbortSignal.any([stop, AbortSignal.timeout(exportMs)]);
    const isExported = await program.exported(deadline);
    await program.tracker.shutdown(deadline);
    return isExported;
  }
}

/** Creates the importer of what commands left behind in a host's data folder. @param consumer receives its records */
export function openLeftovers(
  config: Pick<Configuration, 'data-dir'>,
  host: Host,
  consumer: RecordConsumer,
): Promise<Leftovers> {
  const { registry, decoding, clock, logger, pid } = host;
  return createLeftovers(config['data-dir'], null, {
    consumer,
    registry,
    artifacts: new StoreArtifactSink(host.openArtifacts),
    otlp: () => ({ codec: decoding.codecs.json, bodies: decoding.bodies.json }),
    clock,
    logger,
    pid,
  });
}

/** Writes the program's URL to the data folder's lock, and at the shutdown ends responses that would not end by themselves. */
export class Announcement implements Component {
  readonly name = 'announcement';

  constructor(
    private readonly host: Pick<Host, 'lock'>,
    private readonly ports: Pick<Ports, 'otlpUrl'>,
    private readonly stopping: AbortController,
  ) {}

  async start(): Promise<void> {
    this.host.lock.announce(this.ports.otlpUrl);
  }

  async shutdown(): Promise<void> {
    this.stopping.abort();
  }
}
