import type { Clock } from '../core/clock.js';
import type { Appended } from '../log/appended.js';
import type { ClusterStores } from '../storage/cluster/cluster-stores.js';
import type { SharedTrace } from '../storage/cluster/shared-trace-store.js';
import type { SharedFiles } from './shared-files.js';
import { STORED_LOG_FILES, type TraceCopy } from './trace-copy.js';
import type { TraceFollower } from './trace-follower.js';

/** What a trace is held with. */
export interface HeldTraceDeps {
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
/** Beginnings of waits are told apart so far, in milliseconds. */
const WAIT_STEP_MS = 500;

/** One trace that this process has: from its parts to its log, to everything that follows that, and at its end to the bucket. */
export class HeldTrace {
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
    private readonly deps: HeldTraceDeps,
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
    // Of a trace that nobody had before, everything is news.
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

  /** That a wait is over is a part like any other, so that it is over at the same place in every copy. */
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
