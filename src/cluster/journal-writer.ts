import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import { groupBy } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import type { ForeignSegments } from '../log/foreign-segments.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';
import { recordCountOf } from '../record/record-page.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { JournalStore, NewPart } from '../storage/cluster/journal-store.js';
import type { JournalObjects } from './journal-objects.js';
import { encodePart } from './part-encoding.js';

/** What the writer works with. */
export interface JournalWriterDeps {
  readonly bucket: Pick<ObjectStore, 'put'>;
  readonly journal: Pick<JournalStore, 'add'>;
  readonly objects: Pick<JournalObjects, 'cache'>;
  readonly foreign: ForeignSegments;
  /** Under which id things are written now. */
  readonly processId: () => string;
  /** Called when traces have new parts. */
  readonly onAccepted: () => void;
  readonly logger: Logger;
}

/** Objects are about this large at most; a delivery that is larger is one by itself. In bytes. */
const OBJECT_BYTES = 8 * 1024 * 1024;
/** What may wait to be written; beyond it senders are asked to wait. In bytes. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_MS = 1_000;

interface Job {
  readonly parts: readonly { readonly traceId: TraceId; readonly bytes: Buffer }[];
  readonly byteCount: number;
  resolve(): void;
  reject(error: ConsumeError): void;
}

/**
 * Accepts deliveries where several processes share the work: the records of all that wait go to the bucket as one object,
 * whose parts are then numbered in the database. While one object is written the next one gathers. So what was accepted
 * is on no single disk, and each process that assembles a trace finds its parts in the same order.
 */
export class JournalWriter implements Component, RecordConsumer {
  readonly name = 'journal';
  private queue: Job[] = [];
  private queuedBytes = 0;
  private running: Promise<void> | undefined;
  private foreignTail: Promise<void> = Promise.resolve();
  private isStopped = false;
  private isFailing = false;
  private objectNumber = 0;

  constructor(private readonly deps: JournalWriterDeps) {}

  async start(): Promise<void> {
    await this.deps.foreign.start();
  }

  async consume(delivery: Delivery): Promise<void> {
    if (this.isStopped) {
      throw new ConsumeError(
        'unavailable',
        'run-bridge is shutting down; send the request again shortly',
        RETRY_AFTER_MS,
      );
    }
    // What a delivery lends is read before anything is waited for.
    const parts = partsOf(delivery);
    await Promise.all([this.enqueue(parts), this.appendForeign(delivery)]);
  }

  async shutdown(): Promise<void> {
    this.isStopped = true;
    await this.running;
    await this.foreignTail;
    await this.deps.foreign.close();
  }

  private async enqueue(parts: Job['parts']): Promise<void> {
    if (parts.length === 0) return;
    const byteCount = parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (this.queuedBytes > 0 && this.queuedBytes + byteCount > MAX_QUEUED_BYTES) {
      throw new ConsumeError(
        'overloaded',
        'too many records wait for the bucket; send the request again shortly',
        RETRY_AFTER_MS,
      );
    }
    this.queuedBytes += byteCount;
    try {
      await new Promise<void>((resolve, reject) => {
        this.queue.push({ parts, byteCount, resolve, reject });
        this.running ??= this.runFlushes();
      });
    } finally {
      this.queuedBytes -= byteCount;
    }
  }

  /** Foreign telemetry stays with the process that got it. */
  private async appendForeign({ foreign }: Delivery): Promise<void> {
    if (foreign.length === 0) return;
    const appended = this.foreignTail.then(() => this.deps.foreign.append(foreign));
    this.foreignTail = appended.catch(() => undefined);
    try {
      await appended;
    } catch (cause) {
      const message = `the data folder cannot be written: ${reasonOf(cause)}`;
      throw new ConsumeError('unavailable', message, 5 * RETRY_AFTER_MS, { cause });
    }
  }

  private async runFlushes(): Promise<void> {
    // Whatever comes in the same turn of the event loop goes along.
    await Promise.resolve();
    while (this.queue.length > 0) await this.flush(this.takeJobs());
    this.running = undefined;
  }

  private takeJobs(): readonly Job[] {
    let byteCount = 0;
    const more = this.queue.findIndex((job, index) => {
      byteCount += job.byteCount;
      return index > 0 && byteCount > OBJECT_BYTES;
    });
    return this.queue.splice(0, more === -1 ? this.queue.length : more);
  }

  private async flush(jobs: readonly Job[]): Promise<void> {
    const { bucket, journal, objects, onAccepted } = this.deps;
    try {
      const parts: NewPart[] = [];
      let at = 0;
      for (const { traceId, bytes } of jobs.flatMap((job) => job.parts)) {
        parts.push({ traceId, fromByte: at, toByte: at + bytes.length });
        at += bytes.length;
      }
      const bytes = Buffer.concat(jobs.flatMap((job) => job.parts.map((part) => part.bytes)));
      const processId = this.deps.processId();
      this.objectNumber += 1;
      const key = `journal/${processId}/${String(this.objectNumber).padStart(8, '0')}`;
      await bucket.put(key, bytes);
      await journal.add(processId, key, parts);
      objects.cache(key, bytes);
      this.report(undefined);
      for (const job of jobs) job.resolve();
      onAccepted();
    } catch (cause) {
      this.report(cause);
      const message = `nothing can be accepted just now: ${reasonOf(cause)}`;
      for (const job of jobs) job.reject(new ConsumeError('unavailable', message, 5 * RETRY_AFTER_MS, { cause }));
    }
  }

  /** Logs once when writing starts to fail, and once when it works again. */
  private report(cause: unknown): void {
    const isFailing = cause !== undefined;
    if (isFailing && !this.isFailing) {
      this.deps.logger.error(
        { error: reasonOf(cause) },
        'failed to write telemetry to the bucket and the database; senders are asked to retry',
      );
    } else if (!isFailing && this.isFailing) {
      this.deps.logger.info({}, 'telemetry is written to the bucket and the database again');
    }
    this.isFailing = isFailing;
  }
}

/** One part per trace, so that records of a delivery stay distinct. */
function partsOf({ batches }: Delivery): Job['parts'] {
  const full = batches.filter((batch) => recordCountOf(batch) > 0);
  return [...groupBy(full, ({ traceId }) => traceId)].map(([traceId, list]) => ({ traceId, bytes: encodePart(list) }));
}
