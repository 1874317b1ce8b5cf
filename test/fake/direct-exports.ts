import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { Logger } from '../../src/core/logger.js';
import type { DestinationStatus } from '../../src/export/destination.js';
import type { Exports, ExportThreadSources } from '../../src/export/export-thread.js';
import type { ExportWorker } from '../../src/export/export-worker.js';
import { createWorker, type OpenedExport, openExports, testDestination } from '../../src/export/exports.js';
import { RecordLogLines } from '../../src/export/record-log-lines.js';
import type { ThreadSetup } from '../../src/export/thread-messages.js';
import { createKafkaProducer } from '../../src/kafka/feature.js';
import type { Appended } from '../../src/log/appended.js';
import type { ForeignLogReader } from '../../src/log/foreign-segments.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { ForeignBatch } from '../../src/record/record-batch.js';
import type { TraceId } from '../../src/record/telemetry-record.js';
import type { RunEvent } from '../../src/run/run-event.js';
import type { CursorStore } from '../../src/storage/cursor-store.js';

/** What exports without a thread work with. */
export interface DirectExportsDeps {
  readonly cursors: CursorStore;
  readonly foreign: ForeignLogReader;
  readonly logger: Logger;
}

/** The same workers as in the export thread, in this one. */
export class DirectExports implements Exports {
  readonly name = 'exports';
  private workers: readonly ExportWorker[] = [];

  static async open(setup: ThreadSetup, deps: DirectExportsDeps): Promise<DirectExports> {
    const codecs = { json: new JsonCodec(), protobuf: new ProtobufCodec() };
    const clock: Clock = systemClock;
    const opened = await openExports(setup.configuration, setup.ownHosts, {
      codecs: async () => codecs,
      clock,
      userAgent: 'run-bridge',
      environment: {},
      createKafkaProducer,
    });
    return new DirectExports(setup, deps, opened);
  }

  private constructor(
    private readonly setup: ThreadSetup,
    private readonly deps: DirectExportsDeps,
    private readonly opened: readonly OpenedExport[],
  ) {}

  collectGarbage(): void {}

  async resend(traceIds: readonly TraceId[], destination: string | null): Promise<void> {
    for (const [index, worker] of this.workers.entries()) {
      if (destination !== null && this.opened[index]?.destination.name !== destination) continue;
      for (const traceId of traceIds) await worker.resend(traceId);
    }
  }

  drop(traceId: TraceId): void {
    for (const worker of this.workers) worker.drop(traceId);
  }

  get destinations(): Exports['destinations'] {
    return this.opened.map(({ destination, where }) => [destination.name, where]);
  }

  connect(sources: ExportThreadSources): void {
    const dataFolder = this.setup.configuration['data-dir'];
    const files = new RecordLogFiles(dataFolder, () => {});
    this.workers = this.opened.map((one) =>
      createWorker(one, {
        ...this.deps,
        reader: { read: files.read.bind(files), lengthBytes: (traceId) => sources.lengthBytes(traceId) },
        lines: new RecordLogLines(join(dataFolder), (resource) => resource),
        engineNames: this.setup.configuration['engine-names'],
        runs: { find: (traceId) => sources.findRun(traceId) },
        clock: systemClock,
        maxOpenBytes: 2 ** 26,
        random: () => 0.5,
      }),
    );
  }

  async start(): Promise<void> {
    for (const worker of this.workers) await worker.start();
  }

  onAppended(appended: Appended): void {
    for (const worker of this.workers) worker.onAppended(appended);
  }

  onForeign(batches: readonly ForeignBatch[]): void {
    for (const worker of this.workers) worker.onForeign(batches);
  }

  async onRunEvent(event: RunEvent): Promise<void> {
    for (const worker of this.workers) await worker.onRunEvent(event);
  }

  statuses(): readonly DestinationStatus[] {
    return this.workers.map((worker) => worker.status());
  }

  async test(name: string, deadline: AbortSignal): ReturnType<Exports['test']> {
    const one = this.opened.find(({ destination }) => destination.name === name);
    return one && testDestination(one.destination, { clock: systemClock, version: 'test' }, deadline);
  }

  async flush(deadline: AbortSignal): Promise<boolean> {
    const drained = await Promise.all(this.workers.map((worker) => worker.flush(deadline)));
    return drained.every((isDrained) => isDrained);
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.shutdown(deadline)));
  }
}
