import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Appended } from '../log/trace-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { TraceFollower } from '../run/shared-record-log.js';
import type { ClusterStores } from '../storage/cluster/cluster-stores.js';
import type { SharedTrace } from '../storage/cluster/shared-trace-store.js';
import type { SharedFiles } from './shared-files.js';
import { STORED_LOG_FILES, TraceCopy, type TraceCopyDeps } from './trace-copy.js';

/** Dependencies of `OwnedTraces`. */
export interface OwnedTracesDeps extends OwnedTraceDeps {
  readonly copies: TraceCopyDeps;
  /** Traces are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  readonly logger: Logger;
}

/** How often it is looked for new parts, in milliseconds: with traces to look after, and without. */
const POLL_MS = 150;
const IDLE_POLL_MS = 1_000;
/** Looking takes no more than this part of the time. */
const LOOK_PART = 0.1;
/** Traces that are claimed at a time; another process has its turn before the next. */
const CLAIMS_AT_A_TIME = 10;
/** Traces that are worked on side by side. */
const MAX_AT_WORK = 8;
/** Copies whose files stay open, and their maximum memory; the oldest are closed first. */
const MAX_OPEN = 256;
const MAX_OPEN_BYTES = 32 * 1024 * 1024;
/** After a failure a trace is tried again after so long, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * The traces that this process has among those that share the work. It looks every moment which these are and how far they
 * have come, takes over those of dead processes, and lets go of those that are over. What it has lost it drops.
 */
export class OwnedTraces implements Component {
  readonly name = 'traces of this process';
  private readonly owned = new Map<TraceId, OwnedTrace>();
  private readonly atWork = new Map<TraceId, Promise<void>>();
  private readonly retryMs = new Map<TraceId, number>();
  /** Traces whose copy could not be written, and is made anew. */
  private readonly broken = new Set<TraceId>();
  private timer: Timer | undefined;
  private looking: Promise<void> | undefined;
  private isWoken = false;
  private isStopped = false;
  /** Whether more traces are due than may be worked on. */
  private isFull = false;
  private isFailing = false;

  constructor(private readonly deps: OwnedTracesDeps) {}

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
    this.lookAfter(0);
  }

  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    await this.looking;
    await Promise.all(this.atWork.values());
    await Promise.all([...this.owned.values()].map(({ copy }) => copy.close()));
  }

  /** There is something new. */
  wake(): void {
    if (this.isStopped) return;
    this.isWoken = true;
    if (this.looking === undefined) this.lookAfter(0);
  }

  /** Length of a log that is whole here; `undefined` for any other. */
  lengthBytes(traceId: TraceId): number | undefined {
    const owned = this.owned.get(traceId);
    return owned?.isFollowed === true ? owned.copy.lengthBytes : undefined;
  }

  /** The process has nothing any more. */
  dropAll(): void {
    for (const traceId of this.owned.keys()) this.drop(traceId);
    this.wake();
  }

  private lookAfter(delayMs: number): void {
    this.timer?.cancel();
    if (this.isStopped) return;
    this.timer = this.deps.clock.after(delayMs, () => {
      this.looking ??= this.look();
    });
  }

  private async look(): Promise<void> {
    const { clock, logger } = this.deps;
    const startedMs = clock.monotonicMs();
    this.isWoken = false;
    try {
      await this.lookOnce();
      if (this.isFailing) logger.info({}, 'the traces of this process are processed again');
      this.isFailing = false;
    } catch (error) {
      if (!this.isFailing) {
        logger.error({ error: reasonOf(error) }, 'failed to process the traces of this process; retrying');
      }
      this.isFailing = true;
    }
    this.looking = undefined;
    const tookMs = clock.monotonicMs() - startedMs;
    const pollMs = this.owned.size === 0 && !this.isFailing ? IDLE_POLL_MS : POLL_MS;
    this.lookAfter(this.isWoken ? 0 : Math.max(pollMs, tookMs / LOOK_PART));
  }

  private async lookOnce(): Promise<void> {
    const { stores } = this.deps;
    const processId = this.deps.processId();
    const claimedCount = await stores.traces.claim(processId, CLAIMS_AT_A_TIME);
    if (claimedCount > 0) this.isWoken = true;
    const rows = await stores.traces.listOf(processId);
    if (processId !== this.deps.processId() || this.isStopped) return;
    const own = new Map(rows.map((row) => [row.traceId, row]));
    // Those that are just being released are no longer in `owned`.
    for (const traceId of this.owned.keys()) if (!own.has(traceId)) this.drop(traceId);
    for (const row of rows) this.see(row);
    this.workOnDue();
    await this.closeSome();
  }

  private see(row: SharedTrace): void {
    const { traceId } = row;
    if (this.atWork.has(traceId)) return;
    let owned = this.owned.get(traceId);
    if (owned !== undefined && owned.row.generation !== row.generation) {
      // It was another's meanwhile.
      this.drop(traceId);
      return;
    }
    if (owned === undefined) {
      const copy = new TraceCopy(join(this.deps.folder, 'runs', traceId), traceId, this.deps.copies);
      owned = new OwnedTrace(row, copy, this.broken.delete(traceId), this.deps);
      this.owned.set(traceId, owned);
    }
    owned.row = row;
  }

  /** Those that waited longest come first; the others when there is room. */
  private workOnDue(): void {
    const nowMs = this.deps.clock.monotonicMs();
    const due = [...this.owned].filter(
      ([traceId, owned]) => !this.atWork.has(traceId) && owned.isDue && nowMs >= (this.retryMs.get(traceId) ?? 0),
    );
    due.sort(([, a], [, b]) => a.workedMs - b.workedMs);
    const room = Math.max(0, MAX_AT_WORK - this.atWork.size);
    for (const [traceId, owned] of due.slice(0, room)) this.track(traceId, this.workOn(owned));
    this.isFull = due.length > room;
  }

  private async workOn(owned: OwnedTrace): Promise<void> {
    const { traceId } = owned.row;
    try {
      const isReleased = await owned.work();
      this.retryMs.delete(traceId);
      if (isReleased) await this.forget(traceId, owned);
    } catch (error) {
      this.retryMs.set(traceId, this.deps.clock.monotonicMs() + RETRY_MS);
      this.deps.logger.error({ traceId, error: reasonOf(error) }, 'failed to update a trace; retrying');
      if (!owned.isFollowed || owned.copy.isThere) return;
      // Its followers start again as well: the log they were notified of is gone.
      await this.forget(traceId, owned);
      this.broken.add(traceId);
      this.retryMs.set(traceId, this.deps.clock.monotonicMs() + RETRY_MS);
    }
  }

  /** What is written of it meanwhile is left out by the database. */
  private drop(traceId: TraceId): void {
    const owned = this.owned.get(traceId);
    if (owned === undefined) return;
    this.owned.delete(traceId);
    const before = this.atWork.get(traceId);
    this.track(
      traceId,
      Promise.resolve(before).then(() => this.forget(traceId, owned)),
    );
  }

  private async forget(traceId: TraceId, owned: OwnedTrace): Promise<void> {
    this.owned.delete(traceId);
    this.retryMs.delete(traceId);
    await this.deps.follower.drop(traceId);
    await owned.copy.remove();
  }

  private track(traceId: TraceId, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        this.deps.logger.error({ traceId, error: reasonOf(error) }, 'failed to release a trace');
      })
      .then(() => {
        if (this.atWork.get(traceId) === tracked) this.atWork.delete(traceId);
        if (this.isFull) this.wake();
      });
    this.atWork.set(traceId, tracked);
  }

  private async closeSome(): Promise<void> {
    const open = [...this.owned].filter(([traceId, { copy }]) => copy.memoryBytes > 0 && !this.atWork.has(traceId));
    let memoryBytes = open.reduce((sum, [, { copy }]) => sum + copy.memoryBytes, 0);
    let count = open.length;
    for (const [, { copy }] of open) {
      if (count <= MAX_OPEN && memoryBytes <= MAX_OPEN_BYTES) return;
      memoryBytes -= copy.memoryBytes;
      count -= 1;
      await copy.rest();
    }
  }
}

/** Dependencies of an owned trace. */
export interface OwnedTraceDeps {
  readonly stores: Pick<ClusterStores, 'journal' | 'traces'>;
  readonly files: SharedFiles;
  readonly follower: TraceFollower;
  readonly processId: () => string;
  /** Names of the destinations that everything is exported to. */
  readonly destinations: () => readonly string[];
  readonly clock: Clock;
  /** How long a log record waits for its span's name, in milliseconds. */
  readonly nameHoldMs: number;
  /** A trace of which nothing came for so long is stored, whatever is known of it; in milliseconds. */
  readonly silenceMs: number;
}

/** A trace that has been quiet for so long may be stored, and after so long be let go of; in milliseconds. */
const STORE_AFTER_MS = 1_000;
const RELEASE_AFTER_MS = 5_000;
/** How often it is looked whether a trace is over, in milliseconds. */
const CHECK_MS = 500;
/** Resolution of the start of waits, in milliseconds. */
const WAIT_STEP_MS = 500;

/** One trace that this process has: from its parts to its log, to everything that follows that, and at its end to the bucket. */
export class OwnedTrace {
  /** Whether what follows logs knows it. */
  isFollowed = false;
  private seenStepVersion: number;
  private fedMs: number;
  private checkedMs = Number.NEGATIVE_INFINITY;
  /** When it was worked on last, in monotonic milliseconds. */
  workedMs = 0;
  /** Since when log records wait for a name that came up to a part, the oldest first. */
  private readonly waits: { readonly part: number; readonly sinceMs: number }[] = [];

  /** @param row as it was when it was first seen @param isFollowedAnew whether what follows logs has known it before */
  constructor(
    public row: SharedTrace,
    readonly copy: TraceCopy,
    private readonly isFollowedAnew: boolean,
    private readonly deps: OwnedTraceDeps,
  ) {
    this.seenStepVersion = row.stepVersion;
    this.fedMs = deps.clock.monotonicMs();
  }

  /** Whether there is something to do. */
  get isDue(): boolean {
    const { row, copy, deps } = this;
    if (!this.isFollowed || copy.appliedPart < row.lastPart || row.stepVersion !== this.seenStepVersion) return true;
    const nowMs = deps.clock.monotonicMs();
    return (this.waits[0]?.sinceMs ?? Infinity) <= nowMs - deps.nameHoldMs || this.isToBeChecked(nowMs);
  }

  /** Does what there is to do. @returns true where the trace was let go of */
  async work(): Promise<boolean> {
    this.workedMs = this.deps.clock.monotonicMs();
    await this.feed();
    const { follower, clock } = this.deps;
    const { traceId, stepVersion } = this.row;
    if (stepVersion !== this.seenStepVersion) {
      this.seenStepVersion = stepVersion;
      this.fedMs = clock.monotonicMs();
      follower.onStepsChanged(traceId);
    }
    await this.endWaits();
    const nowMs = clock.monotonicMs();
    if (!this.isToBeChecked(nowMs)) return false;
    const quietMs = nowMs - this.fedMs;
    this.checkedMs = nowMs;
    if (quietMs < this.deps.silenceMs && !(await follower.isSettled(traceId))) return false;
    if (this.copy.appliedPart > this.row.storedPart) await this.store();
    return quietMs >= RELEASE_AFTER_MS && (await this.release());
  }

  private isToBeChecked(nowMs: number): boolean {
    const isQuiet = this.copy.pendingCount === 0 && nowMs - this.fedMs >= STORE_AFTER_MS;
    return isQuiet && nowMs - this.checkedMs >= CHECK_MS;
  }

  private async feed(): Promise<void> {
    const { row, copy } = this;
    const { follower, clock } = this.deps;
    const isBehind = copy.appliedPart < row.lastPart;
    if (this.isFollowed && !isBehind) return;
    // Of a trace without a previous owner, everything is new.
    const isNew = row.generation === 1 && row.storedPart === 0 && !this.isFollowedAnew;
    if (this.isFollowed || isNew) {
      this.isFollowed = true;
      await copy.bringTo(row, (appended: Appended) => follower.onAppended(appended));
    } else {
      await copy.bringTo(row);
      this.isFollowed = true;
      await follower.adopt(row.traceId, copy.lengthBytes);
    }
    this.fedMs = clock.monotonicMs();
    this.noteWait();
  }

  private noteWait(): void {
    if (this.copy.pendingCount === 0) {
      this.waits.length = 0;
      return;
    }
    const last = this.waits.at(-1);
    if (last !== undefined && this.fedMs - last.sinceMs < WAIT_STEP_MS) this.waits.pop();
    const sinceMs = last !== undefined && this.fedMs - last.sinceMs < WAIT_STEP_MS ? last.sinceMs : this.fedMs;
    this.waits.push({ part: this.copy.appliedPart, sinceMs });
  }

  /** The end of a wait is a part like any other, so that it comes at the same offset in every copy. */
  private async endWaits(): Promise<void> {
    const dueMs = this.deps.clock.monotonicMs() - this.deps.nameHoldMs;
    const due = this.waits.filter(({ sinceMs }) => sinceMs <= dueMs).at(-1);
    if (due === undefined) return;
    this.waits.splice(0, this.waits.indexOf(due) + 1);
    await this.deps.stores.journal.addRelease(this.deps.processId(), this.row.traceId, due.part);
  }

  /** The whole log goes to the bucket, in place of its parts. */
  private async store(): Promise<void> {
    const { copy, row } = this;
    const { files } = this.deps;
    const { appliedPart } = copy;
    // What is learned of a stored log is the same wherever it is opened.
    await copy.rest();
    if (!(await files.share(row.traceId, STORED_LOG_FILES, appliedPart))) return;
    this.row = { ...row, storedPart: appliedPart };
    await files.tidy(row.traceId);
  }

  private async release(): Promise<boolean> {
    const { stores, destinations, processId } = this.deps;
    const { row } = this;
    if (row.storedPart < row.lastPart || row.stepVersion !== this.seenStepVersion) return false;
    if (await stores.traces.isExportPending(row.traceId, destinations())) return false;
    return await stores.traces.release(processId(), row);
  }
}
