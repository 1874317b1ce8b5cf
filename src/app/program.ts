import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import { type Component, Lifecycle } from '../core/lifecycle.js';
import { createSpool, type Spool } from '../exec/feature.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import type { RunTracker } from '../run/run-tracker.js';
import { type ArtifactSink, StoreArtifactSink } from '../storage/artifact/artifact-sink.js';
import type { PullStore } from '../storage/pull-store.js';
import type { Host } from './host.js';
import type { Ports } from './ports.js';

/** What a program is made of beside its host. */
export interface ProgramParts {
  /** Takes records of whoever started the program. */
  readonly consumer: RecordConsumer;
  /** Takes in what commands left behind. */
  readonly spool: Spool;
  /** All components, destinations first. */
  readonly components: readonly Component[];
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
  /** Hosted runs that are to be brought in, or were. */
  readonly pulls: PullStore;
  private readonly spool: Spool;
  private readonly lifecycle: Lifecycle;

  constructor(
    private readonly host: Host,
    { consumer, spool, components }: ProgramParts,
  ) {
    this.consumer = consumer;
    this.reader = host.ownReader;
    this.tracker = host.ownRuns;
    this.registry = host.registry;
    this.artifacts = new StoreArtifactSink(host.openArtifacts);
    this.pulls = host.state.pulls;
    this.spool = spool;
    this.lifecycle = new Lifecycle(components);
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
export interface Server {
  readonly program: Program;
  /** Where it listens; addresses are known after the start. */
  readonly ports: Ports;
  /**
   * Makes a token for everything where there has never been one.
   * @returns the file that it is in; `null` where there has been one.
   * @throws StoreError; an Error of the file system.
   */
  makeFirstToken(): Promise<string | null>;
  /**
   * Makes a link that signs in to the pages once.
   * @returns its whole address. @throws StoreError
   */
  makeSignInLink(): Promise<string>;
}

/** A program that a command hands records to while it runs. */
export interface Store {
  readonly program: Program;
  /**
   * The command has ended: waits for the verdicts and files of its runs, for what earlier commands left behind to be taken
   * in, and for destinations to take everything, until `deadline`; the next start continues.
   * @returns whether everything was exported.
   */
  finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean>;
}

/** A program that is handed records whose runs it judges when everything is there. */
export interface Import {
  readonly program: Program;
  /**
   * Everything is there: judges the runs, writes their Parquet and exports them, as far as destinations take them within
   * `exportMs`; the next `serve` continues.
   * @param stop ends it at once
   * @returns whether everything was exported.
   */
  finish(traceIds: Iterable<TraceId>, stop: AbortSignal, exportMs: number): Promise<boolean>;
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
