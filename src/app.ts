import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { Clock } from './component/clock.js';
import { Health } from './component/health.js';
import { Lifecycle } from './component/lifecycle.js';
import type { Logger } from './component/logger.js';
import type { Configuration } from './config/configuration.js';
import { OtlpRequestDecoder } from './decode/otlp-request-decoder.js';
import { PublicAttributeSchema } from './decode/public-attribute-schema.js';
import { JsonCodec } from './otlp/json-codec.js';
import { ProtobufCodec } from './otlp/protobuf-codec.js';
import { OtlpHttpReceiver } from './receiver/otlp-http-receiver.js';
import type { RecordConsumer } from './record/record-consumer.js';
import { InvocationParquet } from './run/invocation-parquet.js';
import type { RunListener } from './run/run-event.js';
import { RunFile } from './run/run-file.js';
import { RunTracker } from './run/run-tracker.js';
import { RUN_TRACKER_DEFAULTS } from './run/run-tracker-config.js';
import { PublicSchema } from './schema/public-schema.js';
import { ForeignSegments } from './sink/foreign-segments.js';
import { JsonlOutput } from './sink/jsonl-output.js';
import { JsonlRecordLog } from './sink/jsonl-record-log.js';
import { listTraces } from './sink/list-traces.js';
import { openJsonlStream } from './sink/open-jsonl-stream.js';
import { ParquetWriter } from './sink/parquet/parquet-writer.js';
import type { AppendListener, RecordLogReader } from './sink/record-log.js';
import { RecordLogFiles } from './sink/record-log-files.js';
import type { DataFolderLock } from './store/data-folder-lock.js';
import { SqliteState } from './store/sqlite-state.js';
import { takeDataFolder } from './store/take-data-folder.js';
import { WebServer } from './web/web-server.js';

/** What the program gets from outside. */
export interface AppDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where `jsonl: "-"` streams to. */
  readonly stdout: Writable;
  /** Process id, for the lock's message. */
  readonly pid: number;
}

/** The program without its command line: components made of a configuration and wired to each other. */
export class App {
  /**
   * Takes the data folder and opens its state.
   * @throws StoreError, DataFolderInUseError, OutputError
   */
  static async open(configuration: Configuration, deps: AppDeps): Promise<App> {
    const folder = configuration['data-dir'];
    const lock = takeDataFolder(folder, deps.pid, deps.clock.nowUnixMs());
    try {
      const { jsonl } = configuration;
      const stream = jsonl === 'off' ? undefined : jsonl === '-' ? deps.stdout : await openJsonlStream(jsonl);
      return new App(configuration, deps, lock, await SqliteState.open(join(folder, 'state.db')), stream);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Takes records as a receiver does: resolves when they are durable. */
  readonly consumer: RecordConsumer;
  readonly reader: RecordLogReader;
  readonly tracker: RunTracker;
  private readonly receiver: OtlpHttpReceiver;
  private readonly web: WebServer;
  private readonly lifecycle: Lifecycle;

  private constructor(
    configuration: Configuration,
    deps: AppDeps,
    private readonly lock: DataFolderLock,
    private readonly state: SqliteState,
    stream: Writable | undefined,
  ) {
    const { clock, logger } = deps;
    const dataFolder = configuration['data-dir'];
    const health = new Health();
    const listeners: AppendListener[] = [];
    const foreign = new ForeignSegments(join(dataFolder, 'foreign'), { isSynced: true, listeners: [] });
    const recordLog = new JsonlRecordLog(
      { dataFolder, durability: 'fsync', maxOpenLogs: 256, maxQueuedRecords: 200_000, nameHoldMs: 6_000 },
      { clock, logger, foreign, listeners },
    );
    this.consumer = recordLog;
    this.reader = new RecordLogFiles(
      dataFolder,
      (traceId, offset, reason) => logger.warn({ traceId, offset, reason }, 'a damaged line was passed over'),
      (traceId) => recordLog.durableLength(traceId),
    );
    const parquet = new InvocationParquet(dataFolder, {
      reader: this.reader,
      createParquet: (path) => ParquetWriter.create(path),
    });
    const runListeners: RunListener[] = configuration.parquet ? [parquet] : [];
    this.tracker = new RunTracker(
      {
        ...RUN_TRACKER_DEFAULTS,
        quietAfterInvocationMs: configuration['invocation-quiet'],
        silenceMs: configuration['invocation-silence'],
      },
      {
        reader: this.reader,
        store: state.runs,
        listeners: runListeners,
        clock,
        logger,
        file: new RunFile(dataFolder),
        listTraces: () => listTraces(dataFolder),
      },
    );
    const output = stream === undefined ? [] : [new JsonlOutput(stream, { reader: this.reader, logger })];
    listeners.push(this.tracker, ...output);
    const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
    const decoder = new OtlpRequestDecoder(new PublicAttributeSchema(PublicSchema.load()), codecs.json);
    this.receiver = new OtlpHttpReceiver(
      { ...configuration.http, maxBodyBytes: configuration['max-body-bytes'] },
      { codecs, decoder, consumer: recordLog, clock, logger, health },
    );
    this.web = new WebServer(configuration.web, { logger, health, routers: [] });
    this.lifecycle = new Lifecycle([...output, this.tracker, recordLog, this.receiver, this.web]);
  }

  /** Where OTLP is received; only after `start()`. */
  get otlpUrl(): string {
    return this.receiver.address.url;
  }

  /** Where health is served; only after `start()`. */
  get webUrl(): string {
    return this.web.address.url;
  }

  /** Each destination: its name and where it is. */
  get destinations(): readonly (readonly [string, string])[] {
    return [];
  }

  /** @throws ListenError */
  async start(): Promise<void> {
    try {
      await this.lifecycle.start();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.lock.announce(this.otlpUrl);
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    try {
      await this.lifecycle.shutdown(deadline);
    } finally {
      await this.close();
    }
  }

  private async close(): Promise<void> {
    await this.state.close();
    this.lock.release();
  }
}
