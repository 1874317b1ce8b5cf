import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { compatibilityPartitioner } from '@platformatic/kafka';
import { type Clock, FixedDelayTask, pause, retry } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { openPartBytes } from '../core/guard.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { forEachOf, Turns } from '../core/turns.js';
import { encodeSegment, LogCopy, type StoredLength } from '../log/bucket/segments.js';
import type { SharedFiles } from '../log/bucket/shared-files.js';
import type { ForeignSegments } from '../log/foreign-segments.js';
import { JsonlRecordLog } from '../log/jsonl-record-log.js';
import { type Appended, LOG_FILE, RESOURCES_FILE } from '../log/trace-log.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { TraceFollower } from '../run/shared-record-log.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { JournalStore, OpenTrace } from '../storage/journal-store.js';
import { StoreError } from '../storage/store-error.js';
import { type Assignment, type Custody, MisplacedError, type PartitionOffset } from './kafka-source.js';

/** What a builder works with. */
export interface BuilderDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get'>;
  readonly journal: JournalStore;
  readonly files: SharedFiles;
  readonly foreign: ForeignSegments;
  readonly follower: TraceFollower;
  /** Takes what came with another key than its trace's id. */
  readonly writer: Custody['writer'];
  readonly processId: string;
  /** Names of the destinations that everything is exported to. */
  readonly destinations: () => readonly string[];
  /** Logs are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  /** A trace of which nothing came for so long is stored, whatever is known of it; in milliseconds. */
  readonly silenceMs: number;
  /** What the program may take, in bytes. */
  readonly maxMemoryBytes: number;
  /** Default 1 GiB. */
  readonly maxUnstoredBytes?: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How far a builder is. */
export interface BuilderStatus {
  /** Partitions that it has. */
  readonly partitionCount: number;
  /** Traces that it has, and how much of their logs is not in the bucket. */
  readonly traceCount: number;
  readonly unstoredBytes: number;
  /** Segments that it has put into the bucket since the start. */
  readonly segmentCount: number;
  /** Since when the oldest batch waits for its commit, in milliseconds; 0 where there is none. */
  readonly oldestUncommittedMs: number;
}

/** A segment is closed at this size, in bytes, or so long after its first record, in milliseconds. */
const SEGMENT_BYTES = 8 * 2 ** 20;
const SEGMENT_MS = 10_000;
/** With so much of logs not in the bucket nothing more is read: it waits in Kafka, and not on this disk. In bytes. */
const MAX_UNSTORED_BYTES = 2 ** 30;
/** How often it is looked which segments are due, and which traces there are, in milliseconds. */
const SEAL_LOOK_MS = 500;
const LOOK_MS = 1_000;
/** Traces that are put together, stored or let go of side by side. */
const AT_ONCE = 8;
/** A trace may be let go of when nothing came for so long, in milliseconds. */
const RELEASE_AFTER_MS = 5_000;
/** Commits may fail for so long before the connection is made anew, in milliseconds. */
const COMMIT_PATIENCE_MS = 10_000;
/** What waits for the bucket or the database is tried again after so long, in milliseconds. */
const RETRY_MS = 1_000;

/** A trace whose log is put together here. */
interface OwnTrace {
  readonly traceId: TraceId;
  readonly partition: number;
  /** Length of the log on this machine. */
  logBytes: number;
  /** How much of it is in the bucket. */
  stored: StoredLength;
  /** Up to where the next segment was tried to share; `null` where it was not. Somebody may have read that, so it is shared again as it was. */
  tried: StoredLength | null;
  /** Length of the log that is in the bucket as a whole. */
  wholeBytes: number;
  /** The answer is missing whether the log is in the bucket as a whole: no segment says anything before that is known. */
  isWholeUnsure: boolean;
  /** Since when there are records that are not in the bucket, in monotonic milliseconds; `null` where there are none. */
  sinceMs: number | null;
  /** Whatever was taken before this time is in the bucket. */
  coveredMs: number;
  /** When something came last. */
  lastMs: number;
  /** Deliveries that are being written. */
  userCount: number;
  /** Of the steps that its run was judged by. */
  stepVersion: number;
  /** Stores and releases, one after the other. */
  readonly turns: Turns;
}

/** Messages that were taken together, and the traces whose logs have to be in the bucket before their offsets are committed. */
interface Batch {
  readonly offsets: readonly PartitionOffset[];
  readonly traces: ReadonlySet<OwnTrace>;
  readonly takenMs: number;
}

/**
 * Builds runs of what the journal's partitions bring that this process has: each trace goes into a record log on this machine,
 * as on a machine that is alone, and the log into the bucket in segments. The offsets of messages are committed when all of
 * their records are there. A trace of which there is more than this process has seen is put together from the bucket first.
 */
export class Builder implements Component, RecordConsumer, Custody {
  readonly name = 'builder';
  private readonly log: JsonlRecordLog;
  private readonly owned = new Map<TraceId, OwnTrace>();
  /** Traces that are being put together. */
  private readonly opening = new Map<TraceId, Promise<OwnTrace>>();
  /** Traces that are being let go of. */
  private readonly leaving = new Map<TraceId, Promise<void>>();
  private assignment: Assignment | null = null;
  private partitionCount = 1;
  /** Of the last assignment. */
  private generation = 0;
  private batches: Batch[] = [];
  private segmentCount = 0;
  private touched = new Set<OwnTrace>();
  private commit: (offsets: readonly PartitionOffset[]) => Promise<void> = async () => {};
  private committing: Promise<void> | undefined;
  /** Since when commits fail, in monotonic milliseconds; `null` while they do not. */
  private uncommittedMs: number | null = null;
  private readonly sealing: FixedDelayTask;
  private readonly looking: FixedDelayTask;
  /** A log could not be written: how far it got is not known, and everything is read again. */
  private isBroken = false;

  constructor(private readonly deps: BuilderDeps) {
    const { folder, clock, logger, foreign, maxMemoryBytes } = deps;
    // Whatever is lost is made again of the bucket and the journal.
    const config = { dataFolder: folder, durability: 'os', nameHoldMs: 6_000 } as const;
    this.log = new JsonlRecordLog(
      {
        ...config,
        maxOpenLogs: 256,
        maxOpenBytes: openPartBytes(maxMemoryBytes),
        maxQueuedRecords: Number.POSITIVE_INFINITY,
      },
      { clock, logger, foreign, listeners: [{ onAppended: (appended) => this.onAppended(appended) }] },
    );
    const failed = (what: string) => (error: unknown) => logger.warn({ error: reasonOf(error) }, what);
    this.sealing = new FixedDelayTask(
      SEAL_LOOK_MS,
      clock,
      () => this.sealDue(),
      failed('failed to store record logs in the bucket; retrying'),
    );
    this.looking = new FixedDelayTask(
      LOOK_MS,
      clock,
      () => this.look(),
      failed('failed to look after the traces of this process; retrying'),
    );
  }

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
    await this.log.start();
    this.sealing.start();
    this.looking.start();
  }

  /** Nothing is read any more when it is called. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    await Promise.all([this.sealing.stop(), this.looking.stop()]);
    await Promise.all([...this.opening.values(), ...this.leaving.values()].map((one) => one.catch(() => undefined)));
    // What waits for a span's name was not committed: whoever has the trace next reads it again, and waits again.
    await this.log.whileClosed([...this.owned.keys()], async () => {});
    await this.log.shutdown(deadline);
  }

  /** How far the runs are that are built here. */
  get status(): BuilderStatus {
    const [oldest] = this.batches;
    return {
      partitionCount: this.assignment?.partitions.size ?? 0,
      traceCount: this.owned.size,
      unstoredBytes: this.unstoredBytes,
      segmentCount: this.segmentCount,
      oldestUncommittedMs: oldest === undefined ? 0 : this.deps.clock.monotonicMs() - oldest.takenMs,
    };
  }

  /** Length of a log that is whole here; `undefined` for any other. */
  lengthBytes(traceId: TraceId): number | undefined {
    return this.owned.get(traceId)?.logBytes;
  }

  /** What of a log of this process is in the bucket; 0 for any other. */
  storedBytes(traceId: TraceId): number {
    return this.owned.get(traceId)?.stored.logBytes ?? 0;
  }

  async begin(assignment: Assignment, signal: AbortSignal): Promise<void> {
    const { journal, processId, clock, logger } = this.deps;
    const { partitions, generation } = assignment;
    const [partitionCount = 0, ...others] = new Set(assignment.partitionCounts.values());
    if (partitionCount === 0 || others.length > 0) throw new Error(UNEQUAL);
    this.assignment = null;
    this.uncommittedMs = null;
    this.batches = [];
    this.touched = new Set();
    await Promise.allSettled(this.opening.values());
    // With another number of partitions traces belong to other processes.
    const isAnew = this.isBroken || partitionCount !== this.partitionCount;
    const claim = async () => {
      const kept = isAnew ? new Set<number>() : await journal.partitionsOf(processId);
      const lost = [...this.owned.values()].filter(
        ({ partition }) => !kept.has(partition) || !partitions.has(partition),
      );
      await forEachOf(lost, AT_ONCE, (trace) => this.drop(trace));
      this.isBroken = false;
      await journal.claim(processId, generation, partitions);
    };
    const delayMs = (error: unknown) => {
      logger.warn({ error: reasonOf(error) }, 'failed to take partitions of the journal; retrying');
      // The group is joined again, which gives it a later generation.
      return error instanceof StoreError && error.code === 'locked' ? null : RETRY_MS;
    };
    await retry(claim, { clock, signal, delayMs });
    this.partitionCount = partitionCount;
    this.generation = generation;
    this.assignment = assignment;
    logger.info({ generation, partitions: [...partitions].join(',') }, 'building runs of partitions of the journal');
  }

  /** Waits while too much is not in the bucket. */
  async taken(offsets: readonly PartitionOffset[], commit: Builder['commit'], signal: AbortSignal): Promise<void> {
    const { clock, maxUnstoredBytes = MAX_UNSTORED_BYTES } = this.deps;
    if (this.isBroken) throw new Error('a record log could not be written; what was not stored is read again');
    const failedMs = clock.monotonicMs() - (this.uncommittedMs ?? Number.POSITIVE_INFINITY);
    // The client asks the broker that it has found first, for good; another client finds the one that is responsible now.
    if (failedMs > COMMIT_PATIENCE_MS) throw new Error('offsets could not be committed for a while');
    this.commit = commit;
    this.batches.push({ offsets, traces: this.touched, takenMs: clock.monotonicMs() });
    this.touched = new Set();
    while (this.unstoredBytes > maxUnstoredBytes && !signal.aborted) await pause(clock, SEAL_LOOK_MS, signal);
  }

  private get unstoredBytes(): number {
    let bytes = 0;
    for (const { logBytes, stored } of this.owned.values()) bytes += Math.max(0, logBytes - stored.logBytes);
    return bytes;
  }

  /** Of a process that ends everything is stored, so that nothing is read twice. */
  async end(isStopping: boolean): Promise<void> {
    if (isStopping && !this.isBroken) {
      await forEachOf([...this.owned.values()], AT_ONCE, (trace) => this.seal(trace)).catch(() => undefined);
      await this.commitStored();
    }
    this.assignment = null;
    this.batches = [];
  }

  get writer(): Custody['writer'] {
    return this.deps.writer;
  }

  /** Takes the records of a message. @throws MisplacedError where one is of a trace whose partition this process has not; ConsumeError */
  async consume(delivery: Delivery): Promise<void> {
    const { assignment } = this;
    if (assignment === null) throw new ConsumeError('unavailable', 'this process has no part of the journal', RETRY_MS);
    const traceIds = [...new Set(delivery.batches.map(({ traceId }) => traceId))];
    if (!traceIds.every((id) => assignment.partitions.has(this.partitionOf(id)))) throw new MisplacedError();
    let traces: readonly OwnTrace[];
    try {
      traces = await this.useAll(traceIds);
    } catch (cause) {
      throw new ConsumeError('unavailable', `runs cannot be looked up: ${reasonOf(cause)}`, RETRY_MS, { cause });
    }
    try {
      await this.log.consume(delivery);
    } catch (error) {
      this.isBroken = true;
      throw error;
    } finally {
      for (const trace of traces) {
        trace.userCount -= 1;
        this.touched.add(trace);
      }
    }
  }

  /** Puts all of a log that there is now into the bucket. @returns false where it is another process's */
  async store(traceId: TraceId, isFinished: boolean): Promise<boolean> {
    const trace = this.owned.get(traceId);
    if (trace === undefined) return false;
    const { logBytes } = trace;
    if (isFinished) await this.storeWhole(trace);
    else await this.seal(trace);
    return this.has(trace) && trace.stored.logBytes >= logBytes;
  }

  /** Puts files of a run into the bucket, where this process has the trace. */
  async share(traceId: TraceId, names: readonly string[]): Promise<void> {
    const trace = this.owned.get(traceId);
    if (trace === undefined) return;
    await trace.turns.run(async () => void (await this.deps.files.share(traceId, this.generation, names)));
  }

  private onAppended(appended: Appended): void {
    const { clock, follower } = this.deps;
    const trace = this.owned.get(appended.traceId);
    if (trace === undefined) return;
    trace.logBytes = appended.lengthBytes;
    trace.lastMs = clock.monotonicMs();
    trace.sinceMs ??= trace.lastMs;
    follower.onAppended(appended);
  }

  /** The traces, each of them here until its `userCount` is counted down. */
  private async useAll(traceIds: readonly TraceId[]): Promise<readonly OwnTrace[]> {
    const used: OwnTrace[] = [];
    try {
      const unknown: TraceId[] = [];
      for (const traceId of traceIds) {
        await this.leaving.get(traceId);
        const known = this.owned.get(traceId);
        if (known === undefined) unknown.push(traceId);
        else used.push(inUse(known));
      }
      const rows = unknown.filter((id) => !this.opening.has(id) && !this.owned.has(id));
      const opened = rows.map((traceId) => ({ traceId, partition: this.partitionOf(traceId) }));
      const fresh = opened.length === 0 ? new Set<TraceId>() : await this.deps.journal.open(opened);
      await forEachOf(unknown, AT_ONCE, async (traceId) => {
        const partition = this.partitionOf(traceId);
        used.push(inUse(await this.take({ traceId, partition, stepVersion: -1 }, fresh.has(traceId))));
      });
      return used;
    } catch (error) {
      for (const trace of used) trace.userCount -= 1;
      throw error;
    }
  }

  /** The partition of a trace, as Kafka's own producers find it by the key. */
  private partitionOf(traceId: TraceId): number {
    return compatibilityPartitioner({ topic: '' }, Buffer.from(traceId)) % this.partitionCount;
  }

  /** Has a trace's log here. @param isNew whether there is nothing of it anywhere */
  private take(row: OpenTrace, isNew: boolean): Promise<OwnTrace> {
    const known = this.owned.get(row.traceId);
    if (known !== undefined) return Promise.resolve(known);
    const going = this.opening.get(row.traceId);
    if (going !== undefined) return going;
    const opened = this.putTogether(row, isNew).finally(() => this.opening.delete(row.traceId));
    this.opening.set(row.traceId, opened);
    return opened;
  }

  private async putTogether({ traceId, partition, stepVersion }: OpenTrace, isNew: boolean): Promise<OwnTrace> {
    const { folder, bucket, journal, follower, clock } = this.deps;
    await this.leaving.get(traceId);
    const copy = new LogCopy(join(folder, 'runs', traceId), traceId, { bucket, journal });
    if (!isNew) await copy.refresh(clock.monotonicMs());
    const nowMs = clock.monotonicMs();
    const trace: OwnTrace = {
      ...{ traceId, partition, stepVersion, stored: copy.stored, logBytes: copy.stored.logBytes },
      wholeBytes: copy.wholeBytes,
      tried: null,
      isWholeUnsure: false,
      ...{ sinceMs: null, coveredMs: nowMs, lastMs: nowMs, userCount: 0, turns: new Turns() },
    };
    this.owned.set(traceId, trace);
    if (trace.logBytes > 0) await follower.adopt(traceId, trace.logBytes);
    return trace;
  }

  /** Looks which traces this process has to look after, and lets go of those that are over. */
  private async look(): Promise<void> {
    const { assignment } = this;
    if (assignment === null) return;
    const { journal, processId, follower } = this.deps;
    const before = [...this.owned.values()];
    const rows = await journal.listOpen(processId);
    if (this.assignment !== assignment) return;
    const own = rows.filter(({ partition }) => assignment.partitions.has(partition));
    await forEachOf(own, AT_ONCE, async (row) => {
      if (this.leaving.has(row.traceId) || this.assignment !== assignment) return;
      const trace = await this.take(row, false);
      if (trace.stepVersion === row.stepVersion) return;
      trace.stepVersion = row.stepVersion;
      trace.lastMs = this.deps.clock.monotonicMs();
      follower.onStepsChanged(row.traceId);
    });
    // With another number of partitions a trace may have moved to another process. One that is not stored stays until the group changes.
    const open = new Set(rows.map(({ traceId }) => traceId));
    await forEachOf(before, AT_ONCE, async (trace) => {
      const { traceId, logBytes, stored } = trace;
      if (open.has(traceId) || this.leaving.has(traceId) || !this.has(trace) || !this.isQuiet(trace)) return;
      if (logBytes === stored.logBytes) await this.drop(trace);
    });
    await forEachOf([...this.owned.values()], AT_ONCE, (trace) => this.releaseIfOver(trace));
  }

  private async releaseIfOver(trace: OwnTrace): Promise<void> {
    const { journal, files, follower, processId, destinations, clock, silenceMs } = this.deps;
    const { traceId } = trace;
    const quietMs = clock.monotonicMs() - trace.lastMs;
    if (quietMs < RELEASE_AFTER_MS || !this.isQuiet(trace)) return;
    if (quietMs < silenceMs && !(await follower.isSettled(traceId))) return;
    await this.storeWhole(trace);
    if (await journal.isExportPending(traceId, destinations())) return;
    if (!this.isQuiet(trace) || trace.logBytes !== trace.wholeBytes || !this.has(trace)) return;
    await trace.turns.run(() => files.tidy(traceId, this.generation));
    if (!this.isQuiet(trace) || !this.has(trace)) return;
    const leaving = journal.close(processId, trace).then(async (isClosed) => {
      if (isClosed) await this.forget(trace);
    });
    await this.leave(trace, leaving);
  }

  /** Nothing of it is being written, or waits for a name. */
  private isQuiet({ traceId, userCount }: OwnTrace): boolean {
    return userCount === 0 && this.log.pendingSinceMs(traceId) === undefined;
  }

  /** Whether the trace has not been let go of meanwhile, and perhaps taken again. */
  private has(trace: OwnTrace): boolean {
    return this.owned.get(trace.traceId) === trace;
  }

  private async drop(trace: OwnTrace): Promise<void> {
    await this.leave(trace, this.forget(trace));
  }

  private async leave({ traceId }: OwnTrace, leaving: Promise<void>): Promise<void> {
    const left = leaving.finally(() => this.leaving.delete(traceId));
    this.leaving.set(
      traceId,
      left.catch(() => undefined),
    );
    await left;
  }

  private async forget(trace: OwnTrace): Promise<void> {
    const { traceId } = trace;
    this.owned.delete(traceId);
    await this.deps.follower.drop(traceId);
    await trace.turns.ended();
    const folder = join(this.deps.folder, 'runs', traceId);
    await this.log.whileClosed([traceId], () => rm(folder, { recursive: true, force: true }));
  }

  private async sealDue(): Promise<void> {
    const beforeMs = this.deps.clock.monotonicMs() - SEGMENT_MS;
    const due = [...this.owned.values()].filter(
      ({ sinceMs, logBytes, stored }) =>
        sinceMs !== null && (sinceMs <= beforeMs || logBytes - stored.logBytes >= SEGMENT_BYTES),
    );
    try {
      await forEachOf(due, AT_ONCE, (trace) => this.seal(trace));
    } finally {
      await this.commitStored();
    }
  }

  /** Puts what is new of a log into the bucket. What comes meanwhile waits for the next time: it would make a small segment. */
  private seal(trace: OwnTrace): Promise<void> {
    return trace.turns.run(async () => {
      if (trace.isWholeUnsure) return await this.putWhole(trace);
      const { files, folder } = this.deps;
      const place = join(folder, 'runs', trace.traceId);
      const seen = this.seen(trace);
      if (trace.stored.logBytes >= seen.logBytes) return;
      while (trace.stored.logBytes < seen.logBytes) {
        if (!this.has(trace)) return;
        const { logBytes, resourcesBytes } = trace.stored;
        const path = join(place, LOG_FILE);
        const toByte = trace.tried?.logBytes ?? Math.min(seen.logBytes, logBytes + SEGMENT_BYTES);
        const part = await readLines(path, logBytes, toByte);
        // One line is longer than that.
        const log = part.length > 0 ? part : await readLines(path, logBytes, seen.logBytes);
        // Read after what they are of; those of later records do no harm.
        const resources = await readLines(join(place, RESOURCES_FILE), resourcesBytes, trace.tried?.resourcesBytes);
        const end = { logBytes: logBytes + log.length, resourcesBytes: resourcesBytes + resources.length };
        if (log.length === 0)
          throw new Error(`the record log of trace ${trace.traceId} is shorter than what was written`);
        trace.tried = end;
        const segment = encodeSegment(resources, log);
        if (!(await files.shareSegment(trace.traceId, this.generation, logBytes, segment))) return;
        this.segmentCount += 1;
        trace.stored = end;
        trace.tried = null;
      }
      this.noteStored(trace, seen);
    });
  }

  /** Puts a log into the bucket as a whole, in place of its segments. */
  private storeWhole(trace: OwnTrace): Promise<void> {
    return trace.turns.run(() => this.putWhole(trace));
  }

  private async putWhole(trace: OwnTrace): Promise<void> {
    if (trace.wholeBytes === trace.logBytes || !this.has(trace)) return;
    const { files, folder } = this.deps;
    const seen = this.seen(trace);
    const resources = await readLines(join(folder, 'runs', trace.traceId, RESOURCES_FILE), 0);
    const sizes = new Map([
      [LOG_FILE, seen.logBytes],
      [RESOURCES_FILE, resources.length],
    ]);
    trace.isWholeUnsure = true;
    const isShared = await files.share(trace.traceId, this.generation, [...sizes.keys()], sizes);
    trace.isWholeUnsure = false;
    if (!isShared) return;
    trace.wholeBytes = seen.logBytes;
    trace.stored = { logBytes: seen.logBytes, resourcesBytes: resources.length };
    trace.tried = null;
    this.noteStored(trace, seen);
  }

  /** How long a log is now, and up to when everything that was taken is in it: what waits for a span's name is not. */
  private seen({ traceId, logBytes }: OwnTrace): { readonly logBytes: number; readonly untilMs: number } {
    const nowMs = this.deps.clock.monotonicMs();
    return { logBytes, untilMs: Math.min(nowMs, this.log.pendingSinceMs(traceId) ?? nowMs) };
  }

  private noteStored(trace: OwnTrace, { logBytes, untilMs }: ReturnType<Builder['seen']>): void {
    trace.coveredMs = untilMs;
    trace.sinceMs = trace.logBytes > logBytes ? this.deps.clock.monotonicMs() : null;
    if (trace.logBytes >= logBytes) this.deps.follower.onStored(trace.traceId, trace.stored.logBytes);
  }

  /** Commits the offsets of batches, from the oldest on, all of whose records are in the bucket. */
  private async commitStored(): Promise<void> {
    await this.committing;
    if (this.isBroken) return;
    const firstOpen = this.batches.findIndex((batch) => ![...batch.traces].every((one) => this.isStored(one, batch)));
    const count = firstOpen === -1 ? this.batches.length : firstOpen;
    if (count === 0) return;
    const done = this.batches.slice(0, count);
    const ends = new Map(
      done.flatMap(({ offsets }) => offsets).map((one) => [`${one.topic} ${one.partition}`, one] as const),
    );
    const { batches } = this;
    this.committing = this.commit([...ends.values()]).then(
      () => {
        batches.splice(0, count);
        this.uncommittedMs = null;
      },
      (error: unknown) => {
        this.uncommittedMs ??= this.deps.clock.monotonicMs();
        this.deps.logger.warn({ error: reasonOf(error) }, 'failed to commit offsets; retrying');
      },
    );
    await this.committing;
  }

  private isStored(trace: OwnTrace, { takenMs }: Batch): boolean {
    if (trace.coveredMs > takenMs) return true;
    if (trace.logBytes > trace.stored.logBytes) return false;
    const sinceMs = this.log.pendingSinceMs(trace.traceId);
    return sinceMs === undefined || sinceMs > takenMs;
  }
}

const UNEQUAL = 'the topics of the journal have different numbers of partitions; give them the same number';

function inUse(trace: OwnTrace): OwnTrace {
  trace.userCount += 1;
  return trace;
}

/** Whole lines of a file between two bytes; up to its end where no other is given. */
async function readLines(path: string, fromByte: number, toByte?: number): Promise<Buffer> {
  const handle = await open(path, 'r');
  try {
    const end = toByte ?? (await handle.stat()).size;
    const bytes = Buffer.alloc(end - fromByte);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, fromByte);
    const whole = bytes.lastIndexOf('\n', Math.max(0, bytesRead - 1)) + 1;
    return bytes.subarray(0, bytesRead === 0 ? 0 : whole);
  } finally {
    await handle.close();
  }
}
