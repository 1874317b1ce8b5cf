import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import { type Component, Lifecycle } from '../core/lifecycle.js';
import { createSpool, type Spool } from '../exec/feature.js';
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

/** What features add to the components of a host; each list is started in its place. */
export interface AddedComponents {
  readonly retention: readonly Component[];
  readonly webhooks: readonly Component[];
  /** The run model. Default: the host's; an import starts it when everything is there. */
  readonly runs?: readonly Component[];
  /** What records come from. */
  readonly sources: readonly Component[];
}

/** Components of a host with those of features, destinations first: what records are handed to starts before them and ends after them. */
function inOrder({ components: own, disk }: Host, added: AddedComponents): readonly Component[] {
  return [
    ...own.storage,
    ...added.retention,
    ...own.rowBackup,
    ...own.exports,
    ...added.webhooks,
    ...own.projections,
    ...(added.runs ?? own.runs),
    ...own.recordLog,
    disk,
    ...added.sources,
  ];
}

/** How often a run that is being judged is looked at, in milliseconds. */
const SETTLE_POLL_MS = 20;

/** A program at work on a data folder. */
export class Program {
  /** Takes records: resolves when they are durable. */
  readonly consumer: RecordConsumer;
  readonly reader: RecordLogReader;
  readonly tracker: RunTracker;
  /** Registers the steps of runs, for commands that run under this program. */
  readonly registry: LocalStepRegistry;
  /** Keeps artifacts of steps. */
  readonly artifacts: ArtifactSink;
  readonly state: State;
  private readonly lifecycle: Lifecycle;

  /** @param spool takes in what commands left behind */
  constructor(
    private readonly host: Host,
    private readonly spool: Spool,
    consumer: RecordConsumer,
    added: AddedComponents,
  ) {
    this.consumer = consumer;
    this.reader = host.ownReader;
    this.tracker = host.ownRuns;
    this.registry = host.registry;
    this.artifacts = new StoreArtifactSink(host.openArtifacts);
    this.state = host.state;
    this.lifecycle = new Lifecycle(inOrder(host, added));
  }

  /** Each destination: its name and where it is. */
  get destinations(): readonly (readonly [string, string])[] {
    return this.host.exports?.destinations ?? [];
  }

  /** @throws ListenError */
  async start(): Promise<void> {
    try {
      await this.lifecycle.start();
    } catch (error) {
      await this.host.close();
      throw error;
    }
    // What they load would have made the start longer.
    this.host.exports?.begin();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    try {
      await this.lifecycle.shutdown(deadline);
    } finally {
      await this.host.close();
    }
  }

  /** Takes in the folder of one command, which was left in another place. @returns the count of its records. @throws DataFolderInUseError */
  takeInCommand(folder: string): Promise<number> {
    return this.spool.takeIn(folder);
  }

  /** Traces of which commands left records behind, as far as they were taken in. */
  get leftTraceIds(): Iterable<TraceId> {
    return this.spool.traceIds;
  }

  /** Waits until what commands left behind is taken in and their runs have verdicts and files. */
  async takeInLeftovers(deadline: AbortSignal): Promise<void> {
    await this.spool.looked(deadline);
    await this.settled(this.spool.traceIds, deadline);
  }

  /** Waits until these runs have verdicts and files. */
  async settled(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<void> {
    for (const traceId of traceIds) {
      while (!deadline.aborted && !(await this.tracker.isSettled(traceId))) {
        await pause(this.host.clock, SETTLE_POLL_MS, deadline);
      }
    }
  }

  /** @returns whether destinations have taken everything before the deadline */
  async exported(deadline: AbortSignal): Promise<boolean> {
    return (await this.host.exports?.flush(deadline)) ?? true;
  }
}

/** A program that serves others. */
export class Server {
  constructor(
    readonly program: Program,
    /** Where it listens; addresses are known after the start. */
    readonly ports: Ports,
    private readonly host: Pick<Host, 'state' | 'clock'>,
  ) {}

  /**
   * Makes a token for everything where there has never been one.
   * @returns the file that it is in; `null` where there has been one.
   * @throws StoreError; an Error of the file system.
   */
  async makeFirstToken(dataFolder: string): Promise<string | null> {
    const { makeFirstToken } = await import('../api/first-token.js');
    return makeFirstToken(this.host.state.tokens, dataFolder, this.host.clock);
  }

  /**
   * Makes a link that signs in to the pages once.
   * @returns its whole address. @throws StoreError
   */
  async makeSignInLink(): Promise<string> {
    const { makeSignInLink } = await import('../api/sign-in-links.js');
    return `${this.ports.webUrl}${await makeSignInLink(this.host.state.tokens, this.host.clock)}`;
  }
}

/** A program that builds runs for others to answer, and listens for questions about itself alone. */
export interface BuildServer {
  readonly program: Program;
  readonly web: WebServer;
}

/** How long the end of a command waits for webhooks, in milliseconds; the next start sends the rest. */
const WEBHOOK_FLUSH_MS = 10_000;

/** A program that a command hands records to while it runs. */
export class Store {
  constructor(
    readonly program: Program,
    private readonly webhooks: { flush(deadline: AbortSignal): Promise<void> },
    /** Sends runs of the data folder again. */
    readonly resender: ResendFeature['resender'],
  ) {}

  /**
   * The command has ended: waits for the verdicts and files of its runs, for what earlier commands left behind to be taken
   * in, and for destinations to take everything, until `deadline`; the next start continues.
   * @returns whether everything was exported.
   */
  async finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean> {
    await this.program.settled(traceIds, deadline);
    await this.program.takeInLeftovers(deadline);
    await this.webhooks.flush(AbortSignal.any([deadline, AbortSignal.timeout(WEBHOOK_FLUSH_MS)]));
    return await this.program.exported(deadline);
  }
}

/** A program that is handed records whose runs it judges when everything is there. */
export class Import {
  /** @param traceIds gets the traces to be judged, for the host */
  constructor(
    readonly program: Program,
    private readonly traceIds: Set<TraceId>,
  ) {}

  /**
   * Everything is there: judges the runs, writes their Parquet and exports them, as far as destinations take them within
   * `exportMs`; the next `serve` continues.
   * @param stop ends it at once
   * @returns whether everything was exported.
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

/** Takes in what commands left behind in a host's data folder. @param consumer takes its records */
export function openSpool(
  config: Pick<Configuration, 'data-dir'>,
  host: Host,
  consumer: RecordConsumer,
): Promise<Spool> {
  const { registry, decoding, clock, logger, pid } = host;
  return createSpool(config['data-dir'], null, {
    consumer,
    registry,
    artifacts: new StoreArtifactSink(host.openArtifacts),
    otlp: () => ({ codec: decoding.codecs.json, bodies: decoding.bodies.json }),
    clock,
    logger,
    pid,
  });
}

/** Says in the data folder's lock where the program listens, and ends answers that have no end of their own. */
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
