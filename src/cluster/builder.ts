import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, FixedDelayTask, pause, retry } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { openPartBytes } from '../core/guard.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { forEachOf, KeyedTurns, Turns } from '../core/turns.js';
import { LOG_FILE, RESOURCES_FILE } from '../log/append-file.js';
import type { Appended } from '../log/appended.js';
import { JsonlRecordLog } from '../log/jsonl-record-log.js';
import type { PassthroughSegments } from '../log/passthrough-segments.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { JournalStore, OpenTrace } from '../storage/journal-store.js';
import { StoreError } from '../storage/store-error.js';
import { encodeSegment, LogCopy, type StoredLength } from './bucket/segments.js';
import type { SharedFiles } from './bucket/shared-files.js';
import { partitionOf } from './kafka/connection.js';
import { type Assignment, type Custody, MisplacedError, type PartitionOffset } from './kafka/kafka-source.js';

/** Is notified of the logs of the traces that this process owns. */
export interface TraceFollower {
  /** Records of a trace were appended; they are borrowed for the time of the call, which must not wait. */
  onAppended(appended: Appended): void;
  /** So much of a log is in the bucket: what leaves the program depends on nothing else. */
  onStored(traceId: TraceId, lengthBytes: number): void;
  /** A trace was taken over from another process, or from the bucket: its whole log is on this machine. */
  adopt(traceId: TraceId, lengthBytes: number): Promise<void>;
  /** More is known of the steps of a trace. */
  onStepsChanged(traceId: TraceId): void;
  /** Returns whether everything about the trace is reported and written. */
  isSettled(traceId: TraceId): Promise<boolean>;
  /** Another process owns the trace, or none: the program has forgotten it when this resolves. */
  drop(traceId: TraceId): Promise<void>;
}

/** What a builder works with. */
export interface BuilderDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get'>;
  readonly journal: JournalStore;
  readonly files: SharedFiles;
  readonly passthrough: PassthroughSegments;
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

/** A segment is closed at this size, in bytes; what is new of every log goes into one this often, in milliseconds. */
const SEGMENT_BYTES = 8 * 2 ** 20;
const SEGMENT_MS = 10_000;
/** With so much of logs not in the bucket nothing more is read: it waits in Kafka, and not on this disk. In bytes. */
const MAX_UNSTORED_BYTES = 2 ** 30;
/** How often segments that are due and traces are looked for, in milliseconds. */
const STORE_LOOK_MS = 500;
const LOOK_MS = 1_000;
/** The number of traces that are acquired, stored or released side by side. */
const AT_ONCE = 8;
/** A trace may be released when nothing came for so long, in milliseconds. */
const RELEASE_AFTER_MS = 5_000;
/** So many commits may fail one after the other before the connection is made anew. */
const MAX_FAILED_COMMITS = 2;
/** The time between attempts to reach the bucket or the database, in milliseconds. */
const RETRY_MS = 1_000;

/** A trace whose log this process builds. */
interface OwnedTrace {
  readonly traceId: TraceId;
  readonly partition: number;
  /** Length of the log on this machine. */
  logBytes: number;
  /** How much of it is in the bucket. */
  stored: StoredLength;
  /** Length of the log that is in the bucket as a whole. */
  wholeBytes: number;
  /** Whether an upload of the whole log failed without an answer: segments are of no use before that is known. */
  isWholeUnsure: boolean;
  /** When something came last, in monotonic milliseconds. */
  lastMs: number;
  /** Deliveries that are being written. */
  userCount: number;
  /** Whether it is being released: callers that need it wait for that. */
  isLeaving: boolean;
  /** The version of the steps by which its run was judged. */
  stepVersion: number;
  /** Stores, one after the other. */
  readonly turns: Turns;
}

/** Messages that were taken together; their offsets are committed when their records are in the bucket. */
interface Batch {
  readonly offsets: readonly PartitionOffset[];
  readonly takenMs: number;
}

/**
 * Builds runs from the partitions of the journal that this process owns: each trace goes into a record log on this machine,
 * as on a machine that is alone, and the log into the bucket in segments. The offsets of messages are committed when all of
 * their records are there. A trace of which there is more than this process has seen is read from the bucket first.
 */
export class Builder implements Component, RecordConsumer, Custody {
  readonly name = 'builder';
  private readonly log: JsonlRecordLog;
  private readonly owned = new Map<TraceId, OwnedTrace>();
  /** Serialises acquiring and releasing a trace. */
  private readonly ownership = new KeyedTurns<TraceId>();
  private assignment: Assignment | null = null;
  private partitionCount = 1;
  /** The generation of the last assignment. */
  private generation = 0;
  private batches: Batch[] = [];
  private segmentCount = 0;
  private commit: (offsets: readonly PartitionOffset[]) => Promise<void> = async () => {};
  /** Stores of all logs, each with its commit, one after the other. */
  private readonly commits = new Turns();
  /** When storing all logs last began, in monotonic milliseconds. */
  private storeBegunMs = Number.NEGATIVE_INFINITY;
  /** Commits that failed since the last one that did not. */
  private failedCommits = 0;
  private readonly storing: FixedDelayTask;
  private readonly looking: FixedDelayTask;
  /** Whether a log could not be written: it is unknown how far it got, and everything is read again. */
  private isBroken = false;

  constructor(private readonly deps: BuilderDeps) {
    const { folder, clock, logger, passthrough, maxMemoryBytes } = deps;
    this.log = new JsonlRecordLog(
      // Whatever is lost is made again of the bucket and the journal; what is too much, Kafka keeps.
      {
        dataFolder: folder,
        durability: 'os',
        maxOpenBytes: openPartBytes(maxMemoryBytes),
        maxQueuedRecords: Number.POSITIVE_INFINITY,
      },
      {
        clock,
        logger,
        passthrough,
        listeners: [{ onAppended: (appended) => this.onAppended(appended) }],
        onFailed: () => {
          this.isBroken = true;
        },
      },
    );
    const every = (intervalMs: number, what: string, action: () => Promise<void>) =>
      new FixedDelayTask(intervalMs, clock, action, (error) =>
        logger.warn({ error: reasonOf(error) }, `failed to ${what}; retrying`),
      );
    this.storing = every(STORE_LOOK_MS, 'store record logs in the bucket', () => this.storeDue());
    this.looking = every(LOOK_MS, 'look after the traces of this process', () => this.look());
  }

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
    await this.log.start();
    this.storing.start();
    this.looking.start();
  }

  /** Closes all logs; the source has ended when it is called. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    // What is committed from here on would stand on logs that are closed.
    this.isBroken = true;
    await Promise.all([this.storing.stop(), this.looking.stop()]);
    await this.ownership.ended();
    // What waits for a span's name was not committed: whoever has the trace next reads it again, and waits again.
    await this.log.whileClosed([...this.owned.keys()], async () => {});
    await this.log.shutdown(deadline);
  }

  /** Returns how far the runs are that this process builds. */
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

  /** Returns the length of a log that this process builds; `undefined` for any other. */
  lengthBytes(traceId: TraceId): number | undefined {
    return this.owned.get(traceId)?.logBytes;
  }

  /** Returns how much of a log of this process is in the bucket, in bytes; 0 for any other. */
  storedBytes(traceId: TraceId): number {
    return this.owned.get(traceId)?.stored.logBytes ?? 0;
  }

  async begin(assignment: Assignment, signal: AbortSignal): Promise<void> {
    const { journal, processId, clock, logger } = this.deps;
    const { partitions, generation } = assignment;
    const [partitionCount = 0, ...others] = new Set(assignment.partitionCounts.values());
    if (partitionCount === 0 || others.length > 0) throw new Error(UNEQUAL);
    this.assignment = null;
    this.failedCommits = 0;
    this.batches = [];
    // With another number of partitions traces belong to other processes.
    const isAnew = this.isBroken || partitionCount !== this.partitionCount;
    const claim = async () => {
      const kept = isAnew ? new Set<number>() : await journal.partitionsOf(processId);
      // One that was taken by the partition that its row had may belong to another one since there are more.
      const isKept = ({ traceId, partition }: OwnedTrace) =>
        [partition, this.partitionOf(traceId)].every((one) => kept.has(one) && partitions.has(one));
      const lost = [...this.owned.values()].filter((trace) => !isKept(trace));
      await forEachOf(lost, AT_ONCE, (trace) => this.drop(trace));
      if (isAnew) this.isBroken = false;
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
    // The client asks the broker that it has found first, for good; another client finds the one that is responsible now.
    if (this.failedCommits >= MAX_FAILED_COMMITS) throw new Error('offsets could not be committed for a while');
    this.commit = commit;
    this.batches.push({ offsets, takenMs: clock.monotonicMs() });
    const isTooMuch = () => this.unstoredBytes > maxUnstoredBytes && !this.isBroken;
    while (isTooMuch() && !signal.aborted) await pause(clock, STORE_LOOK_MS, signal);
  }

  private get unstoredBytes(): number {
    let bytes = 0;
    for (const { logBytes, stored } of this.owned.values()) bytes += Math.max(0, logBytes - stored.logBytes);
    return bytes;
  }

  /** Ends the assignment. A process that stops stores everything before, so that nothing is read twice. */
  async end(isStopping: boolean): Promise<void> {
    if (isStopping && !this.isBroken) await this.storeAll().catch(() => undefined);
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
    const used: OwnedTrace[] = [];
    try {
      await forEachOf(traceIds, AT_ONCE, async (traceId) => void used.push(await this.use(traceId))).catch((cause) => {
        throw new ConsumeError('unavailable', `runs cannot be looked up: ${reasonOf(cause)}`, RETRY_MS, { cause });
      });
      await this.log.consume(delivery);
    } finally {
      for (const trace of used) trace.userCount -= 1;
    }
  }

  /** Uploads all that a log has now. @param isFinished whether its run is over @returns false where another process owns the trace */
  async store(traceId: TraceId, isFinished: boolean): Promise<boolean> {
    const trace = this.owned.get(traceId);
    if (trace === undefined) return false;
    const { logBytes } = trace;
    await trace.turns.run(() => (isFinished ? this.putWhole(trace) : this.putSegments(trace)));
    return this.has(trace) && trace.stored.logBytes >= logBytes;
  }

  /** Uploads files of a run, if this process owns the trace. */
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
    follower.onAppended(appended);
  }

  private partitionOf(traceId: TraceId): number {
    return partitionOf(traceId, this.partitionCount);
  }

  /**
   * Acquires a trace, whose log stays on this machine until its `userCount` is counted down.
   * @param row what the database says of it; left out, it is asked
   * @throws StoreError, ArtifactError, Error
   */
  private async use(traceId: TraceId, row?: OpenTrace): Promise<OwnedTrace> {
    const known = this.owned.get(traceId);
    if (known !== undefined && !known.isLeaving) return inUse(known);
    return await this.ownership.run(traceId, async () =>
      inUse(this.owned.get(traceId) ?? (await this.acquire(traceId, row))),
    );
  }

  private async acquire(traceId: TraceId, row?: OpenTrace): Promise<OwnedTrace> {
    const { assignment } = this;
    const { folder, bucket, journal, follower, clock } = this.deps;
    const { partition, stepVersion } = row ?? { partition: this.partitionOf(traceId), stepVersion: -1 };
    const copy = new LogCopy(join(folder, 'runs', traceId), traceId, { bucket, journal });
    if (row !== undefined || !(await journal.open(traceId, partition))) await copy.refresh();
    if (assignment === null || this.assignment !== assignment) {
      await copy.remove();
      throw new Error('the partitions of this process have changed');
    }
    const { stored, wholeBytes } = copy;
    const trace: OwnedTrace = {
      ...{ traceId, partition, stepVersion, stored, wholeBytes, logBytes: stored.logBytes },
      ...{ isWholeUnsure: false, isLeaving: false, userCount: 0, lastMs: clock.monotonicMs(), turns: new Turns() },
    };
    this.owned.set(traceId, trace);
    if (trace.logBytes > 0) await follower.adopt(traceId, trace.logBytes);
    return trace;
  }

  /** Acquires traces that this process has to look after, and releases those that are over. */
  private async look(): Promise<void> {
    const { assignment } = this;
    if (assignment === null || this.isBroken) return;
    const { journal, processId, follower, clock } = this.deps;
    const before = [...this.owned.values()];
    const rows = await journal.listOpen(processId);
    const own = rows.filter(({ partition }) => assignment.partitions.has(partition));
    await forEachOf(own, AT_ONCE, async (row) => {
      if (this.assignment !== assignment) return;
      const trace = await this.use(row.traceId, row);
      trace.userCount -= 1;
      if (trace.stepVersion === row.stepVersion) return;
      trace.stepVersion = row.stepVersion;
      trace.lastMs = clock.monotonicMs();
      follower.onStepsChanged(row.traceId);
    });
    if (this.assignment !== assignment) return;
    const open = new Set(rows.map(({ traceId }) => traceId));
    await forEachOf(before, AT_ONCE, (trace) =>
      // With another number of partitions it may have moved to another process.
      open.has(trace.traceId) ? this.releaseIfOver(trace) : this.drop(trace, () => this.isStored(trace)),
    );
  }

  private async releaseIfOver(trace: OwnedTrace): Promise<void> {
    const { journal, files, follower, processId, destinations, clock, silenceMs } = this.deps;
    const { traceId } = trace;
    const quietMs = clock.monotonicMs() - trace.lastMs;
    if (quietMs < RELEASE_AFTER_MS || !this.isQuiet(trace)) return;
    if (quietMs < silenceMs && !(await follower.isSettled(traceId))) return;
    await trace.turns.run(() => this.putWhole(trace));
    const isOver = () => this.has(trace) && this.isStored(trace) && trace.wholeBytes === trace.logBytes;
    if (!isOver() || (await journal.isExportPending(traceId, destinations()))) return;
    await trace.turns.run(async () => {
      if (isOver()) await files.tidy(traceId, this.generation);
    });
    await this.drop(trace, async () => isOver() && (await journal.close(processId, trace)));
  }

  /** Returns whether nothing of it is being written, or waits for a name. */
  private isQuiet({ traceId, userCount }: OwnedTrace): boolean {
    return userCount === 0 && this.log.pendingSinceMs(traceId) === undefined;
  }

  /** Returns whether everything that was appended to it is in the bucket. */
  private isStored(trace: OwnedTrace): boolean {
    return this.isQuiet(trace) && trace.stored.logBytes === trace.logBytes;
  }

  /** Returns whether the trace was not released meanwhile, and perhaps acquired again. */
  private has(trace: OwnedTrace): boolean {
    return this.owned.get(trace.traceId) === trace;
  }

  /** Releases a trace, if `mayGo` allows it: nothing is appended to it while that is asked. */
  private drop(trace: OwnedTrace, mayGo: () => boolean | Promise<boolean> = () => true): Promise<void> {
    return this.ownership.run(trace.traceId, async () => {
      if (!this.has(trace)) return;
      trace.isLeaving = true;
      try {
        if (await mayGo()) await this.forget(trace);
      } finally {
        trace.isLeaving = false;
      }
    });
  }

  private async forget(trace: OwnedTrace): Promise<void> {
    const { traceId } = trace;
    this.owned.delete(traceId);
    await this.deps.follower.drop(traceId);
    await trace.turns.ended();
    const folder = join(this.deps.folder, 'runs', traceId);
    await this.log.whileClosed([traceId], () => rm(folder, { recursive: true, force: true }));
  }

  private async storeDue(): Promise<void> {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - this.storeBegunMs >= SEGMENT_MS) {
      this.storeBegunMs = nowMs;
      await this.storeAll();
    }
    const large = [...this.owned.values()].filter(
      ({ logBytes, stored }) => logBytes - stored.logBytes >= SEGMENT_BYTES,
    );
    await forEachOf(large, AT_ONCE, (trace) => trace.turns.run(() => this.putSegments(trace)));
  }

  /** Uploads all that there is, and commits the offsets of earlier batches, up to the first record that waits for the name of a span and is in no log yet. */
  private storeAll(): Promise<void> {
    return this.commits.run(async () => {
      const { commit } = this;
      const batches = [...this.batches];
      let untilMs = Number.POSITIVE_INFINITY;
      await forEachOf([...this.owned.values()], AT_ONCE, async (trace) => {
        const { traceId, logBytes } = trace;
        untilMs = Math.min(untilMs, this.log.pendingSinceMs(traceId) ?? untilMs);
        await trace.turns.run(() => this.putSegments(trace));
        if (trace.stored.logBytes < logBytes) throw new Error(`trace ${traceId} is another process's now`);
      });
      const done = new Set(batches.filter(({ takenMs }) => takenMs < untilMs));
      if (done.size === 0 || this.isBroken) return;
      const offsets = [...done].flatMap((batch) => batch.offsets);
      const ends = new Map(offsets.map((one) => [`${one.topic} ${one.partition}`, one] as const));
      try {
        await commit([...ends.values()]);
        this.batches = this.batches.filter((batch) => !done.has(batch));
        this.failedCommits = 0;
      } catch (error) {
        this.failedCommits += 1;
        this.deps.logger.warn({ error: reasonOf(error) }, 'failed to commit offsets; retrying');
      }
    });
  }

  /** Uploads what is new of a log. What comes meanwhile waits for the next time: it would make a small segment. */
  private async putSegments(trace: OwnedTrace): Promise<void> {
    if (trace.isWholeUnsure) return await this.putWhole(trace);
    const { files, folder } = this.deps;
    const traceFolder = join(folder, 'runs', trace.traceId);
    const endByte = trace.logBytes;
    while (trace.stored.logBytes < endByte && this.has(trace)) {
      const { logBytes, resourcesBytes } = trace.stored;
      const path = join(traceFolder, LOG_FILE);
      const part = await readLines(path, logBytes, Math.min(endByte, logBytes + SEGMENT_BYTES));
      // One line is longer than that.
      const log = part.length > 0 ? part : await readLines(path, logBytes, endByte);
      // Read after what they are of; those of later records do no harm.
      const resources = await readLines(join(traceFolder, RESOURCES_FILE), resourcesBytes);
      if (log.length === 0)
        throw new Error(`the record log of trace ${trace.traceId} is shorter than what was written`);
      const segment = encodeSegment(resources, log);
      if (!(await files.shareSegment(trace.traceId, this.generation, logBytes, segment))) return;
      this.segmentCount += 1;
      this.noteStored(trace, { logBytes: logBytes + log.length, resourcesBytes: resourcesBytes + resources.length });
    }
  }

  /** Uploads a log as a whole, in place of its segments. */
  private async putWhole(trace: OwnedTrace): Promise<void> {
    if (trace.wholeBytes === trace.logBytes || !this.has(trace)) return;
    const { files, folder } = this.deps;
    const { traceId, logBytes } = trace;
    const { length: resourcesBytes } = await readLines(join(folder, 'runs', traceId, RESOURCES_FILE), 0);
    const sizes = { [LOG_FILE]: logBytes, [RESOURCES_FILE]: resourcesBytes };
    trace.isWholeUnsure = true;
    const isShared = await files.share(traceId, this.generation, Object.keys(sizes), sizes);
    trace.isWholeUnsure = false;
    if (!isShared) return;
    trace.wholeBytes = logBytes;
    this.noteStored(trace, { logBytes, resourcesBytes });
  }

  private noteStored(trace: OwnedTrace, stored: StoredLength): void {
    trace.stored = stored;
    this.deps.follower.onStored(trace.traceId, stored.logBytes);
  }
}

const UNEQUAL = 'the topics of the journal have different numbers of partitions; give them the same number';

function inUse(trace: OwnedTrace): OwnedTrace {
  trace.userCount += 1;
  return trace;
}

/** Reads whole lines of a file between two offsets; up to its end if there is no second one. */
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
