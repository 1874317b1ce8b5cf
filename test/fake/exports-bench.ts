import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../../src/config/configuration.js';
import { findConfigurationFile } from '../../src/config/find-configuration-file.js';
import { readConfigurationFile } from '../../src/config/read-configuration-file.js';
import { resolveConfiguration } from '../../src/config/resolve-configuration.js';
import { systemClock } from '../../src/core/clock.js';
import type { ExportSources, Exports, ExportsConfig } from '../../src/export/exports.js';
import type { AppendListener } from '../../src/log/appended.js';
import { JsonlRecordLog } from '../../src/log/jsonl-record-log.js';
import { type PassthroughListener, PassthroughSegments } from '../../src/log/passthrough-segments.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import type { TelemetryRecord, TraceId } from '../../src/record/telemetry-record.js';
import type { RunSummary } from '../../src/run/verdict.js';
import type { State } from '../../src/storage/state.js';
import { openFreshState } from './fresh-state.js';
import { OtlpReceiver } from './otlp-receiver.js';
import { RecordingLogger } from './recording-logger.js';

/** Makes exports in one way. */
export type OpenExports = (config: ExportsConfig, bench: ExportsBench) => Promise<Exports>;

/** In what a start differs. */
export interface StartOptions {
  readonly eventHold?: string;
  readonly changes?: Partial<ExportSources>;
  /** Default: yes. */
  readonly isBegun?: boolean;
}

/** A real data folder with its record log and state, and a receiver, around exports. */
export class ExportsBench {
  readonly logger = new RecordingLogger();
  private readonly listeners: AppendListener[] = [];
  private readonly passthroughListeners: PassthroughListener[] = [];
  private readonly summaries = new Map<TraceId, RunSummary>();
  readonly passthrough: PassthroughSegments;
  private readonly log: JsonlRecordLog;
  private readonly reader: RecordLogFiles;
  private exports: Exports | undefined;
  /** Times that a run cannot be looked up yet, as while a database is away. */
  failingLookUps = 0;

  static async open(): Promise<ExportsBench> {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-exports-'));
    const bench = new ExportsBench(folder, await openFreshState(join(folder, 'state.db')), await OtlpReceiver.listen());
    await bench.log.start();
    return bench;
  }

  private constructor(
    readonly folder: string,
    readonly state: State,
    readonly receiver: OtlpReceiver,
  ) {
    this.passthrough = new PassthroughSegments(join(folder, 'foreign'), {
      isSynced: false,
      listeners: this.passthroughListeners,
    });
    this.log = new JsonlRecordLog(
      { dataFolder: folder, durability: 'os', maxOpenLogs: 16, maxQueuedRecords: 100_000, nameHoldMs: 0 },
      { clock: systemClock, logger: this.logger, passthrough: this.passthrough, listeners: this.listeners },
    );
    this.reader = new RecordLogFiles(
      folder,
      () => {},
      (traceId) => this.log.durableLength(traceId),
    );
  }

  /** Exports of a configuration file's `destinations:` and `event-hold:`, started and told of everything. */
  async start(
    open: OpenExports,
    destinations = `{ jaeger: { endpoint: ${this.receiver.url} } }`,
    { eventHold = '100ms', changes = {}, isBegun = true }: StartOptions = {},
  ): Promise<Exports> {
    const exports = await open(
      { configuration: this.configure(destinations, eventHold), ownHosts: [], version: 'test', logFolder: this.folder },
      this,
    );
    this.exports = exports;
    exports.connect({
      lengthBytes: (traceId) => this.reader.lengthBytes(traceId),
      findRun: async (traceId) => {
        if (this.failingLookUps === 0) return this.summaries.get(traceId);
        this.failingLookUps -= 1;
        throw new Error('the database is away');
      },
      passthrough: this.passthrough,
      origins: this.state.traces,
      manifests: { ofRun: async () => undefined, ofEarlier: async () => undefined },
      cursors: this.state.cursors,
      ...changes,
    });
    await exports.start();
    this.listeners.push(exports);
    this.passthroughListeners.push(exports);
    if (isBegun) exports.begin();
    return exports;
  }

  /** Appends records of one trace, as a receiver does. */
  async append(traceId: TraceId, records: readonly TelemetryRecord[]): Promise<void> {
    const resource = { attributes: { 'service.name': 'dbt' }, scope: { name: 'dbt', version: '2' } };
    await this.log.consume({ batches: [{ traceId, resource, records }], passthrough: [] });
    await this.saveRun(traceId, 'open');
  }

  /** Appends a message of another service. */
  async appendPassthrough(body: string): Promise<void> {
    await this.log.consume({ batches: [], passthrough: [{ signal: 'traces', body, recordCount: 1 }] });
  }

  /** Takes down the end of a run and notifies the exports. */
  async finish(traceId: TraceId): Promise<void> {
    const run = await this.saveRun(traceId, 'finished');
    await this.exports?.onRunEvent({ type: 'finished', run });
  }

  /** Ends exports in good order. */
  async stop(exports: Exports): Promise<void> {
    this.listeners.length = 0;
    this.passthroughListeners.length = 0;
    this.exports = undefined;
    await exports.shutdown(AbortSignal.timeout(30_000));
  }

  async close(): Promise<void> {
    await this.exports?.shutdown(AbortSignal.abort());
    await this.log.shutdown(AbortSignal.abort());
    this.receiver.close();
    await this.state.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  private configure(destinations: string, eventHold: string): Configuration {
    writeFileSync(join(this.folder, 'run-bridge.yaml'), `event-hold: ${eventHold}\ndestinations: ${destinations}\n`);
    const place = { environment: {}, homeDir: this.folder, workingDir: this.folder };
    const found = findConfigurationFile({ ...place, flag: undefined });
    const file = found && readConfigurationFile(found, place);
    const flags = { 'data-dir': this.folder };
    return resolveConfiguration({ ...place, flags, maxMemoryBytes: 384 * 2 ** 20 }, file).configuration;
  }

  private async saveRun(traceId: TraceId, state: 'open' | 'finished'): Promise<RunSummary> {
    const nowMs = systemClock.nowUnixMs();
    const run: RunSummary = {
      traceId,
      firstSeenUnixMs: this.summaries.get(traceId)?.firstSeenUnixMs ?? nowMs,
      lastSeenUnixMs: nowMs,
      state,
      logBytes: await this.reader.lengthBytes(traceId),
      invocations: [],
    };
    this.summaries.set(traceId, run);
    await this.state.runs.save([{ ...run, summary: '{}', parquetBytes: null }]);
    return run;
  }
}
