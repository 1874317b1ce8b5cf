import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DestinationConfig, SignalEndpoint } from '../../src/config/destination-config.js';
import { RetryPolicy } from '../../src/core/clock.js';
import { ExportTurns } from '../../src/core/turns.js';
import type { Destination } from '../../src/export/destination.js';
import {
  DEFAULT_EXPORT_WORKER_OPTIONS,
  type ExportWorkerDeps,
  type ExportWorkerOptions,
} from '../../src/export/destination.js';
import { ExportWorker } from '../../src/export/export-worker.js';
import { OtlpDestination } from '../../src/export/otlp-destination.js';
import type { RunMapper } from '../../src/export/run-mapper.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import type { TraceId } from '../../src/record/telemetry-record.js';
import type { RunSummary } from '../../src/run/verdict.js';
import type { State } from '../../src/storage/state.js';
import { FakeClock } from './fake-clock.js';
import { openFreshState } from './fresh-state.js';
import { MemoryRecordLog } from './memory-record-log.js';
import { OtlpReceiver } from './otlp-receiver.js';
import { RecordingLogger } from './recording-logger.js';
import { SimpleRunMapper } from './simple-run-mapper.js';

const CODECS = { json: new JsonCodec(), protobuf: new ProtobufCodec() };

/** What a worker in a test differs in. */
export interface WorkerChanges {
  readonly name?: string;
  readonly options?: Partial<ExportWorkerOptions>;
  readonly endpoint?: Partial<SignalEndpoint>;
  readonly signals?: readonly Signal[];
  readonly deps?: Partial<ExportWorkerDeps>;
  readonly destination?: Destination;
}

/** Everything around export workers: a receiver, record logs, a state.db, a clock and a logger. */
export class ExportBench {
  readonly clock = new FakeClock();
  readonly log = new MemoryRecordLog();
  readonly logger = new RecordingLogger();
  readonly mappers: SimpleRunMapper[] = [];
  readonly summaries = new Map<TraceId, RunSummary>();
  private readonly workers: ExportWorker[] = [];
  private readonly receivers: OtlpReceiver[] = [];

  static async open(): Promise<ExportBench> {
    const folder = await mkdtemp(join(tmpdir(), 'run-bridge-export-'));
    return new ExportBench(folder, await openFreshState(join(folder, 'state.db')), await OtlpReceiver.listen());
  }

  private constructor(
    private readonly folder: string,
    readonly state: State,
    readonly receiver: OtlpReceiver,
  ) {
    this.receivers.push(receiver);
  }

  async listen(): Promise<OtlpReceiver> {
    const receiver = await OtlpReceiver.listen();
    this.receivers.push(receiver);
    return receiver;
  }

  async destination(url: string, changes: WorkerChanges = {}): Promise<OtlpDestination> {
    const endpoint = (signal: Signal): SignalEndpoint => ({
      url: `${url}/v1/${signal}`,
      headers: {},
      // Tests move time by hours while requests are under way.
      timeoutMs: 100 * 86_400_000,
      compression: 'none',
      encoding: 'protobuf',
      tls: {},
      ...changes.endpoint,
    });
    const signals = changes.signals ?? ['traces', 'logs'];
    const config: DestinationConfig = {
      name: changes.name ?? 'jaeger',
      endpoints: Object.fromEntries(signals.map((signal) => [signal, endpoint(signal)])),
      redaction: null,
      mapping: {},
    };
    return OtlpDestination.open(config, {
      codecs: async () => CODECS,
      clock: this.clock,
      userAgent: 'run-bridge/test',
    });
  }

  /** A worker that is started and hears of appends. */
  async worker(changes: WorkerChanges = {}, url = this.receiver.url): Promise<ExportWorker> {
    const worker = this.create(changes.destination ?? (await this.destination(url, changes)), changes);
    await worker.start();
    this.log.listeners.push(worker);
    return worker;
  }

  /** A worker that is not started. */
  create(destination: Destination, changes: WorkerChanges): ExportWorker {
    const worker = new ExportWorker(
      // One request at a time, so that a test sees them in their order; tests of more say so.
      { ...DEFAULT_EXPORT_WORKER_OPTIONS, batchDelayMs: 0, maxInFlight: 1, maxBacklogAgeMs: null, ...changes.options },
      {
        destination,
        cursors: this.state.cursors,
        reader: this.log,
        lines: this.log.lines,
        runs: { find: async (traceId) => this.summaries.get(traceId) },
        createMapper: () => this.mapper(),
        requestRetryPolicy: new RetryPolicy({ baseMs: 100, maxMs: 5_000, maxRetryAfterMs: 600_000 }, () => 0.5),
        retryPolicy: new RetryPolicy({ baseMs: 1_000, maxMs: 60_000, maxRetryAfterMs: 600_000 }, () => 0.5),
        clock: this.clock,
        logger: this.logger,
        turns: new ExportTurns(),
        onFailed: (error) => {
          throw error;
        },
        ...changes.deps,
      },
    );
    this.workers.push(worker);
    return worker;
  }

  /** Forgets a worker as a killed process would: it hears of nothing any more, and nobody shuts it down. */
  drop(worker: ExportWorker): void {
    this.log.listeners.splice(this.log.listeners.indexOf(worker), 1);
  }

  /** Takes down the end of a run and notifies the workers. */
  async finish(traceId: TraceId, ...workers: readonly ExportWorker[]): Promise<void> {
    const run = await this.saveRun(traceId, 'finished');
    for (const worker of workers) worker.onRunEvent({ type: 'finished', run });
  }

  async saveRun(traceId: TraceId, state: 'open' | 'finished'): Promise<RunSummary> {
    const logBytes = await this.log.lengthBytes(traceId);
    const nowMs = this.clock.nowUnixMs();
    const run: RunSummary = {
      traceId,
      firstSeenUnixMs: this.summaries.get(traceId)?.firstSeenUnixMs ?? nowMs,
      lastSeenUnixMs: nowMs,
      state,
      logBytes,
      invocations: [],
    };
    this.summaries.set(traceId, run);
    await this.state.runs.save([{ ...run, summary: '{}', parquetBytes: null }]);
    return run;
  }

  async close(): Promise<void> {
    for (const worker of this.workers) await worker.shutdown(AbortSignal.abort());
    for (const receiver of this.receivers) receiver.close();
    await this.state.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  private mapper(): RunMapper {
    const mapper = new SimpleRunMapper();
    this.mappers.push(mapper);
    return mapper;
  }
}
