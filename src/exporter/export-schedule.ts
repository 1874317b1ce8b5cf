import { setImmediate as nextTurn } from 'node:timers/promises';
import { reasonOf } from '../component/reason-of.js';
import type { ExportQueue } from './export-queue.js';
import type { ExportRun } from './export-run.js';
import type { TurnEnd } from './export-turn.js';
import type { ExportWorkerDeps } from './export-worker-deps.js';
import type { LaneSenders } from './lane-senders.js';

/** What the schedule asks of the worker. */
export interface ExportScheduleHost {
  /** Reads on in a run, and hands what comes of it to the lanes. */
  takeTurn(run: ExportRun): Promise<TurnEnd>;
  close(run: ExportRun): void;
  /** The run was sent to its end, or is not to be sent. */
  forget(run: ExportRun): void;
  /** Something came to rest. */
  rested(): void;
}

/** Gives runs their turns, one at a time, as long as lanes have room; and lets lanes send what that gave. */
export class ExportSchedule {
  /** Runs that wait for a lane. */
  private readonly parked = new Set<ExportRun>();
  /** Runs whose turn failed, waiting for another try. */
  private readonly faulted = new Set<ExportRun>();
  /** Whether a run has its turn now. */
  isInTurn = false;
  private isOpen = false;
  /** Monotonic time at which requests that were not full were sent for the last time. */
  private sentAllMs = 0;

  constructor(
    private readonly deps: Pick<ExportWorkerDeps, 'destination' | 'clock' | 'logger' | 'retryPolicy'> & {
      readonly queue: ExportQueue;
      readonly senders: LaneSenders;
    },
    private readonly batchDelayMs: number,
    private readonly host: ExportScheduleHost,
    private readonly stop: AbortSignal,
  ) {}

  /** Whether no turn can be taken now. */
  get isResting(): boolean {
    return !this.isInTurn && (this.deps.queue.isEmpty || !this.deps.senders.haveRoom);
  }

  /** Whether no run waits for anything but records. */
  get isDrained(): boolean {
    return !this.isInTurn && this.deps.queue.isEmpty && this.parked.size === 0 && this.faulted.size === 0;
  }

  /** From now on turns are taken. */
  open(): void {
    this.isOpen = true;
  }

  /** Gives a run a turn. */
  wake(run: ExportRun): void {
    run.isBehind = true;
    this.enqueue(run);
    this.pump();
  }

  enqueue(run: ExportRun): void {
    this.drop(run);
    if (run.isDropped) return;
    // One that only waits for a lane is not read anew for that: its turn's end sees that it has missed something.
    if (run.isInTurn) run.isWokenAgain ||= run.isBehind;
    else this.deps.queue.add(run);
  }

  /** A lane's wait is over. */
  resumeParked(): void {
    for (const run of [...this.parked]) this.enqueue(run);
    this.pump();
  }

  /** A run waits for nothing any more. */
  drop(run: ExportRun): void {
    this.parked.delete(run);
    this.faulted.delete(run);
  }

  pump(): void {
    if (!this.isOpen) return;
    const { queue, senders, clock } = this.deps;
    const nowMs = clock.monotonicMs();
    while (!this.stop.aborted && !this.isInTurn && senders.haveRoom) {
      const run = queue.take(nowMs);
      if (run === undefined) break;
      if (this.isWorthATurn(run)) void this.takeTurn(run);
    }
    // While runs are read, requests fill up; but nothing waits for that longer than for more records.
    const isAll = !this.isInTurn || nowMs - this.sentAllMs >= this.batchDelayMs;
    if (isAll) this.sentAllMs = nowMs;
    senders.send(isAll);
    if (!this.isInTurn) this.host.rested();
  }

  /** A run that needs only lanes that wait is parked; where no lane is left there is nothing to do until the next start. */
  private isWorthATurn(run: ExportRun): boolean {
    if (run.isDropped) return false;
    const { senders } = this.deps;
    if (senders.areOff) {
      this.host.forget(run);
      return false;
    }
    if (run.isBehind || senders.canCatchUp(run.progress)) return true;
    if (run.hasMissed) this.parked.add(run);
    return false;
  }

  private async takeTurn(run: ExportRun): Promise<void> {
    this.isInTurn = true;
    run.isInTurn = true;
    try {
      const next = await this.host.takeTurn(run);
      run.failedTurns = 0;
      run.isInTurn = false;
      if (run.isWokenAgain) run.isBehind = true;
      if (run.isDropped) this.host.close(run);
      else if (next === 'done') this.host.forget(run);
      else if (next === 'again' || run.isWokenAgain || run.hasMissed) this.deps.queue.add(run);
      this.deps.queue.hadTurn(run, this.deps.clock.monotonicMs());
    } catch (error) {
      run.isInTurn = false;
      if (run.isDropped) this.host.close(run);
      else this.fault(run, error);
    }
    run.isWokenAgain = false;
    // Exporting is not all that the process does: others get a turn of the event loop, too.
    await nextTurn();
    this.isInTurn = false;
    this.pump();
  }

  private fault(run: ExportRun, error: unknown): void {
    run.failedTurns += 1;
    this.host.close(run);
    run.isBehind = true;
    this.faulted.add(run);
    const { destination, logger, clock, retryPolicy } = this.deps;
    if (run.failedTurns === 1) {
      const reason = reasonOf(error);
      logger.error(
        { destination: destination.name, traceId: run.traceId, error: reason },
        'a run could not be exported; it is tried again',
      );
    }
    clock.after(retryPolicy.delayMs(run.failedTurns, null), () => this.wake(run));
  }
}
