import { join } from 'node:path';
import type { Clock, Timer } from '../core/clock.js';
import { errorCode, reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import { groupBy } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import { recordCountOf } from '../otlp/wire/item-chunk.js';
import { UNKNOWN_RESOURCE } from '../record/attributes.js';
import { ConsumeError, type Delivery, type RecordBatch, type RecordConsumer } from '../record/record-batch.js';
import { SpanIdTable } from '../record/span-id-table.js';
import type { TraceId } from '../record/telemetry-record.js';
import { FolderSync, PENDING_FILE, sizeOf, syncFolder } from './append-file.js';
import type { AppendListener } from './appended.js';
import type { PassthroughSegments } from './passthrough-segments.js';
import { listTraces } from './record-log-files.js';
import { type Addition, TraceLog, type TraceLogOptions } from './trace-log.js';

/** Settings of the record log. */
export interface RecordLogConfig {
  /** The data folder; traces are in its `runs/`. */
  readonly dataFolder: string;
  /** `fsync`: an answer means that the disk has the records. `os`: the operating system has them (lost with the machine, not with the process). */
  readonly durability: 'fsync' | 'os';
  /** Record logs open at once; the one used longest ago is closed first. Default 256. */
  readonly maxOpenLogs?: number;
  /** Memory of open record logs, in bytes (mostly ids of their spans); beyond it the least recently used one is closed. Default 32 MiB. */
  readonly maxOpenBytes?: number;
  /** The same of those whose runs have ended, which nobody is going to write to any more, but for what comes late. Default 4 MiB. */
  readonly maxEndedBytes?: number;
  /** Maximum number of records that are accepted and not yet durable; beyond it senders are asked to retry. Default 200,000. */
  readonly maxQueuedRecords?: number;
  /** How long a log record waits for its span's name. Default 6,000 ms: the engine sends spans every 5 s. */
  readonly nameHoldMs?: number;
}

interface Job {
  readonly delivery: Delivery;
  resolve(): void;
  reject(error: ConsumeError): void;
}

interface RunningAppend {
  readonly ended: Promise<unknown>;
  /** Of log records that waited when it began: some of them may be what is appended. */
  readonly pendingSinceMs: number | undefined;
}

/** A time at which every hold is over. */
const NO_HOLD = Number.POSITIVE_INFINITY;
/** How often pending log records are checked, in milliseconds. */
const PENDING_CHECK_MS = 1000;
/** The process, or the machine, has no file descriptor left. */
const OUT_OF_FILES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);
const RETRY_AFTER_MS = 1000;
const MAX_OPEN_LOGS = 256;
const MAX_OPEN_BYTES = 32 * 1024 * 1024;
const MAX_ENDED_BYTES = 4 * 1024 * 1024;
const MAX_QUEUED_RECORDS = 200_000;
const NAME_HOLD_MS = 6_000;
/** Record logs that are written at the same time; with those that stay open it bounds the open files. */
const MAX_PARALLEL_LOGS = 64;

/**
 * The record log: appends deliveries to the file of each trace and answers when they are durable. All deliveries
 * that wait during a round of writes and syncs share the next one, so syncs do not grow with load.
 */
export class JsonlRecordLog implements Component, RecordConsumer {
  readonly name = 'record log';
  private readonly open = new OpenLogs();
  /** Traces whose appends wait until these resolve. */
  private readonly locked = new Map<TraceId, Promise<void>>();
  /** Running appends; at most one per trace. */
  private readonly appending = new Map<TraceId, RunningAppend>();
  private queue: Job[] = [];
  private queuedRecords = 0;
  private running: Promise<void> | undefined;
  private isStopped = false;
  private pendingTimer: Timer | undefined;
  private restoring: Promise<void> = Promise.resolve();
  private isFailing = false;
  private readonly traceOptions: TraceLogOptions;

  constructor(
    private readonly config: RecordLogConfig,
    private readonly deps: {
      readonly clock: Clock;
      readonly logger: Logger;
      readonly passthrough: PassthroughSegments;
      readonly listeners: readonly AppendListener[];
      /** Is called when records could not be written; the callee has all of their trace written anew. Left out: what waits is read from the disk. */
      readonly onFailed?: () => void;
    },
  ) {
    const { durability, nameHoldMs = NAME_HOLD_MS } = config;
    const isSynced = durability === 'fsync';
    const folders = new FolderSync(isSynced ? syncFolder : async () => {});
    this.traceOptions = { isSynced, nameHoldMs, syncFolder: (path) => folders.sync(path) };
  }

  async start(): Promise<void> {
    await this.deps.passthrough.start();
    this.restoring = this.restorePending();
  }

  /** A delivery with very many traces is split, so that other deliveries come in between. */
  async consume(delivery: Delivery): Promise<void> {
    const { maxQueuedRecords = MAX_QUEUED_RECORDS } = this.config;
    const recordCount = countRecords(delivery);
    if (this.queuedRecords > 0 && this.queuedRecords + recordCount > maxQueuedRecords) {
      throw new ConsumeError(
        'overloaded',
        'too many records wait for the disk; send the request again shortly',
        RETRY_AFTER_MS,
      );
    }
    this.queuedRecords += recordCount;
    try {
      for (const part of partsOf(delivery, MAX_PARALLEL_LOGS)) await this.enqueue(part);
    } finally {
      this.queuedRecords -= recordCount;
    }
  }

  private enqueue(delivery: Delivery): Promise<void> {
    if (this.isStopped) {
      throw new ConsumeError(
        'unavailable',
        'run-bridge is shutting down; send the request again shortly',
        RETRY_AFTER_MS,
      );
    }
    return new Promise((resolve, reject) => {
      this.queue.push({ delivery, resolve, reject });
      this.running ??= this.runRounds();
    });
  }

  /** Length of the durable part of a trace's log in bytes, while it is open. */
  durableLength(traceId: TraceId): number | undefined {
    return this.open.get(traceId)?.lengthBytes;
  }

  /**
   * Since when log records of a trace wait for their span's name, or listeners have not heard yet that they are written, in monotonic
   * milliseconds; `undefined` where there are none.
   */
  pendingSinceMs(traceId: TraceId): number | undefined {
    return (this.appending.get(traceId) ?? this.open.get(traceId))?.pendingSinceMs;
  }

  /**
   * A run has ended: its record log is closed before those of others, and soon. What comes late opens it again, which reads it once.
   * @param logBytes of the log when it ended; where it has grown since, the run goes on
   */
  noteEnded(traceId: TraceId, logBytes: number): void {
    const { open, appending } = this;
    if (open.get(traceId)?.lengthBytes !== logBytes || appending.has(traceId) || open.waiting.has(traceId)) return;
    open.ended.add(traceId);
    const { maxEndedBytes = MAX_ENDED_BYTES } = this.config;
    let byteCount = 0;
    for (const each of open.ended) byteCount += open.bytesOf(each);
    for (const each of open.ended) {
      if (byteCount <= maxEndedBytes) break;
      if (appending.has(each)) continue;
      byteCount -= open.bytesOf(each);
      void this.close(each);
    }
  }

  /** Appends what waits for a span's name and is due. */
  async flushPending(): Promise<void> {
    await this.running;
    if (this.open.waiting.size > 0) await this.enqueue({ batches: [], passthrough: [] });
  }

  /** What still waits for a span's name is written without waiting for it. */
  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.pendingTimer?.cancel();
    await this.restoring;
    await this.running;
    for (const traceId of [...this.open.waiting]) await this.appendTo(traceId, [], NO_HOLD);
    await Promise.all(this.open.traceIds.map((traceId) => this.open.take(traceId)?.close()));
    await this.deps.passthrough.close();
  }

  private async runRounds(): Promise<void> {
    while (this.queue.length > 0) {
      const jobs = this.queue;
      this.queue = [];
      await this.runRound(jobs);
    }
    this.running = undefined;
    this.watchPending();
  }

  private async runRound(jobs: readonly Job[]): Promise<void> {
    const additions = groupByTrace(jobs);
    const nowMs = this.deps.clock.monotonicMs();
    for (const traceId of this.open.due(nowMs)) if (!additions.has(traceId)) additions.set(traceId, []);
    const failures = new Map<TraceId | 'passthrough', unknown>();
    await this.appendPassthrough(jobs).catch((error: unknown) => failures.set('passthrough', error));
    const all = [...additions];
    for (let from = 0; from < all.length; from += MAX_PARALLEL_LOGS) {
      const to = from + MAX_PARALLEL_LOGS;
      const part = all.slice(from, to);
      // Nobody waits for those that wait themselves.
      const late = new Set(part.flatMap(([traceId]) => (this.locked.has(traceId) ? [traceId] : [])));
      const meeting = new Meeting(part.length - late.size, async () => {
        if (to >= all.length)
          await notifyDurable(jobs, (job) => failedOf(job, failures) === undefined && !isOneOf(job, late));
      });
      await Promise.all(
        part.map(async ([traceId, list]) => {
          const ended = (failure?: unknown) => {
            if (failure !== undefined) failures.set(traceId, failure);
            return late.has(traceId) ? undefined : meeting.arrive();
          };
          await this.appendTo(traceId, list, this.deps.clock.monotonicMs(), ended);
        }),
      );
      await this.closeLeastUsed();
    }
    this.report(failures);
    for (const job of jobs) answer(job, failures);
  }

  /** Logs once when writing starts to fail, and once when it works again. */
  private report(failures: ReadonlyMap<TraceId | 'passthrough', unknown>): void {
    const [first] = failures;
    if (first !== undefined && !this.isFailing) {
      const [where, error] = first;
      this.deps.logger.error(
        { where, failedCount: failures.size, error: String(error) },
        'failed to write telemetry to the data folder; senders are asked to retry',
      );
    } else if (first === undefined && this.isFailing) {
      this.deps.logger.info({}, 'telemetry is written to the data folder again');
      if (this.deps.onFailed === undefined) this.restoring = this.restorePending();
    }
    this.isFailing = first !== undefined;
  }

  /** Runs an action while no file of these traces is open or written here; records that arrive for them wait. */
  async whileClosed<T>(traceIds: readonly TraceId[], action: () => Promise<T>): Promise<T> {
    let release = () => {};
    const hold = new Promise<void>((resolve) => {
      release = resolve;
    });
    const own = traceIds.filter((traceId) => !this.locked.has(traceId));
    for (const traceId of own) this.locked.set(traceId, hold);
    try {
      for (const traceId of own) {
        await this.appending.get(traceId)?.ended;
        await this.open.take(traceId)?.close();
      }
      return await action();
    } finally {
      for (const traceId of own) this.locked.delete(traceId);
      release();
    }
  }

  /** @param onWritten see `append` */
  private async appendTo(
    traceId: TraceId,
    additions: readonly Addition[],
    nowMs: number,
    onWritten: (failure?: unknown) => Promise<void> | undefined = () => undefined,
  ): Promise<void> {
    await this.locked.get(traceId);
    // Nothing of it waits any more: it may have been closed, and its folder is not to come back.
    if (additions.length === 0 && this.open.get(traceId) === undefined) {
      await onWritten();
      return;
    }
    const pendingSinceMs = this.pendingSinceMs(traceId);
    const ended = this.append(traceId, additions, nowMs, onWritten);
    this.appending.set(traceId, { ended, pendingSinceMs });
    await ended;
    this.appending.delete(traceId);
  }

  /**
   * @param onWritten is called once: when the records are durable, before listeners hear of them, who wait for it; or with an
   * error, and the log is reopened on its next use. If a listener throws, it is called again, with that.
   */
  private async append(
    traceId: TraceId,
    additions: readonly Addition[],
    nowMs: number,
    onWritten: (failure?: unknown) => Promise<void> | undefined,
  ): Promise<void> {
    try {
      const log = await this.logOf(traceId, nowMs);
      const appended = await log.append(additions, nowMs);
      this.open.used(log);
      await onWritten();
      if (!appended.isEmpty) for (const listener of this.deps.listeners) listener.onAppended(appended);
      log.release();
    } catch (error) {
      this.deps.onFailed?.();
      await this.close(traceId);
      await onWritten(error);
    }
  }

  private async appendPassthrough(jobs: readonly Job[]): Promise<void> {
    const batches = jobs.flatMap((job) => job.delivery.passthrough);
    if (batches.length > 0) await this.deps.passthrough.append(batches);
  }

  private async logOf(traceId: TraceId, nowMs: number): Promise<TraceLog> {
    const known = this.open.get(traceId);
    if (known !== undefined) return known;
    const folder = join(this.config.dataFolder, 'runs', traceId);
    const open = () => TraceLog.open(folder, traceId, this.traceOptions, nowMs);
    const log = await open().catch(async (error: unknown) => {
      if (!OUT_OF_FILES.has(errorCode(error) ?? '')) throw error;
      await this.closeIdle();
      return await open();
    });
    this.open.used(log);
    return log;
  }

  /** Keeps the number of open logs, and what they take, within bounds; the latest stays in any case. */
  private async closeLeastUsed(): Promise<void> {
    const { maxOpenLogs = MAX_OPEN_LOGS, maxOpenBytes = MAX_OPEN_BYTES } = this.config;
    const { open } = this;
    while (open.size > maxOpenLogs || (open.memoryBytes > maxOpenBytes && open.size > 1)) {
      const traceId = open.leastUsed;
      if (traceId === undefined) return;
      if (open.waiting.has(traceId)) await this.appendTo(traceId, [], NO_HOLD);
      await this.close(traceId);
    }
  }

  /** Closes a log to which nothing is being written: everything in it is synced already. */
  private async close(traceId: TraceId): Promise<void> {
    await this.open
      .take(traceId)
      ?.close()
      .catch(() => undefined);
  }

  /** Gives descriptors back: closes the logs that nothing is being written to, and that nothing waits in. */
  private async closeIdle(): Promise<void> {
    const { open, appending } = this;
    const idle = open.traceIds.filter((traceId) => !appending.has(traceId) && !open.waiting.has(traceId));
    await Promise.allSettled(idle.map((traceId) => open.take(traceId)?.close()));
  }

  /** Restores log records that waited for a name when the process ended; nothing else may open their trace again. */
  private async restorePending(): Promise<void> {
    const { dataFolder } = this.config;
    const failed: string[] = [];
    const traceIds = await listTraces(dataFolder).catch((error: unknown) => {
      failed.push(String(error));
      return [];
    });
    for (const traceId of traceIds) {
      if (this.isStopped) return;
      try {
        const size = await sizeOf(join(dataFolder, 'runs', traceId, PENDING_FILE));
        if (size > 0)
          await this.consume({ batches: [{ traceId, resource: UNKNOWN_RESOURCE, records: [] }], passthrough: [] });
      } catch (error) {
        failed.push(String(error));
      }
    }
    const [error] = failed;
    if (this.isStopped || error === undefined) return;
    this.deps.logger.error(
      { error, failedCount: failed.length },
      'failed to restore the log records that were pending at the last shutdown',
    );
  }

  private watchPending(): void {
    if (this.isStopped || this.pendingTimer !== undefined) return;
    if (this.open.waiting.size === 0) return;
    this.pendingTimer = this.deps.clock.after(PENDING_CHECK_MS, () => {
      this.pendingTimer = undefined;
      if (this.isStopped) return;
      this.flushPending().catch((error: unknown) =>
        this.deps.logger.error({ error: String(error) }, 'failed to write pending log records'),
      );
    });
  }
}

/** The record logs that are open, and what all of them take together: a round of appends looks at no other. */
class OpenLogs {
  /** Traces whose log records wait for their span's name. */
  readonly waiting = new Set<TraceId>();
  /** Traces whose runs have ended and have not been appended to since, the one that ended first in front. */
  readonly ended = new Set<TraceId>();
  /** What they take, in bytes, as each was when it was used last. */
  memoryBytes = 0;
  /** The one that was used longest ago first. */
  private readonly logs = new Map<TraceId, TraceLog>();
  private readonly bytes = new Map<TraceId, number>();

  get size(): number {
    return this.logs.size;
  }

  get traceIds(): readonly TraceId[] {
    return [...this.logs.keys()];
  }

  /** Returns the one to be closed next: of an ended run, else the one that was used longest ago. */
  get leastUsed(): TraceId | undefined {
    const [ended] = this.ended;
    const [traceId] = this.logs.keys();
    return ended ?? traceId;
  }

  get(traceId: TraceId): TraceLog | undefined {
    return this.logs.get(traceId);
  }

  /** Returns those of which something has waited long enough. All that wait count as used: closing one would end its wait. */
  due(nowMs: number): readonly TraceId[] {
    const due: TraceId[] = [];
    for (const traceId of this.waiting) {
      const log = this.logs.get(traceId);
      if (log === undefined) continue;
      this.logs.delete(traceId);
      this.logs.set(traceId, log);
      if (log.isDue(nowMs)) due.push(traceId);
    }
    return due;
  }

  /** Returns what one takes, as `memoryBytes`. */
  bytesOf(traceId: TraceId): number {
    return this.bytes.get(traceId) ?? 0;
  }

  /** A log was opened, or appended to: it is the last one to be closed. */
  used(log: TraceLog): void {
    const { traceId, memoryBytes, pendingCount } = log;
    this.take(traceId);
    this.logs.set(traceId, log);
    this.bytes.set(traceId, memoryBytes);
    this.memoryBytes += memoryBytes;
    if (pendingCount > 0) this.waiting.add(traceId);
  }

  /** Takes one out, to be closed. */
  take(traceId: TraceId): TraceLog | undefined {
    const log = this.logs.get(traceId);
    this.memoryBytes -= this.bytesOf(traceId);
    this.logs.delete(traceId);
    this.bytes.delete(traceId);
    this.waiting.delete(traceId);
    this.ended.delete(traceId);
    return log;
  }
}

function countRecords(delivery: Delivery): number {
  let count = 0;
  for (const batch of delivery.batches) count += recordCountOf(batch);
  for (const batch of delivery.passthrough) count += batch.recordCount;
  return count;
}

function groupByTrace(jobs: readonly Job[]): Map<TraceId, Addition[]> {
  const additions = new Map<TraceId, Addition[]>();
  for (const job of jobs) {
    const occurrences = new SpanIdTable();
    for (const batch of job.delivery.batches) {
      const list = additions.get(batch.traceId);
      if (list === undefined) additions.set(batch.traceId, [{ batch, occurrences }]);
      else list.push({ batch, occurrences });
    }
  }
  return additions;
}

/** Where the appends of a round meet before anybody hears of them: when all are durable, their senders are answered first. */
class Meeting {
  private readonly opened: Promise<void>;
  private open: () => void = () => {};

  /** @param count of those who come @param onAll what is done when all have come, and before they go on */
  constructor(
    private count: number,
    private readonly onAll: () => Promise<void>,
  ) {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  /** Resolves when all have come. */
  arrive(): Promise<void> {
    this.count -= 1;
    if (this.count === 0) void this.onAll().then(this.open);
    return this.opened;
  }
}

/** Notifies the senders of what is durable, and gives them a round of the event loop: to answer, before others go on. */
async function notifyDurable(jobs: readonly Job[], isDurable: (job: Job) => boolean): Promise<void> {
  const notified = jobs.filter((job) => job.delivery.onDurable !== undefined && isDurable(job));
  if (notified.length === 0) return;
  for (const { delivery } of notified) delivery.onDurable?.();
  await new Promise((resolve) => setImmediate(resolve));
}

type Failures = ReadonlyMap<TraceId | 'passthrough', unknown>;

function isOneOf({ delivery }: Job, traceIds: ReadonlySet<TraceId>): boolean {
  return traceIds.size > 0 && delivery.batches.some(({ traceId }) => traceIds.has(traceId));
}

/** Returns what of a job could not be written. */
function failedOf({ delivery }: Job, failures: Failures): TraceId | 'passthrough' | undefined {
  if (failures.size === 0) return undefined;
  const failed = delivery.batches.find((batch) => failures.has(batch.traceId))?.traceId;
  return failed ?? (delivery.passthrough.length > 0 && failures.has('passthrough') ? 'passthrough' : undefined);
}

function answer(job: Job, failures: Failures): void {
  const where = failedOf(job, failures);
  if (where === undefined) {
    job.resolve();
    return;
  }
  const cause = failures.get(where);
  const reason = reasonOf(cause);
  job.reject(
    new ConsumeError('unavailable', `the data folder cannot be written: ${reason}`, 5 * RETRY_AFTER_MS, { cause }),
  );
}

/**
 * Cuts a delivery into parts of at most so many traces each; one as it is if it has no more. What belongs to one trace
 * stays together and in order.
 */
export function* partsOf(delivery: Delivery, maxTraces: number): Iterable<Delivery> {
  if (delivery.batches.length <= maxTraces) {
    yield delivery;
    return;
  }
  let passthrough = delivery.passthrough;
  let batches: RecordBatch[] = [];
  let traceCount = 0;
  for (const list of groupBy(delivery.batches, ({ traceId }) => traceId).values()) {
    for (const batch of list) batches.push(batch);
    traceCount += 1;
    if (traceCount < maxTraces) continue;
    yield { batches, passthrough };
    [batches, passthrough, traceCount] = [[], [], 0];
  }
  if (batches.length > 0 || passthrough.length > 0) yield { batches, passthrough };
}
