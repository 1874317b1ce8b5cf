import { type Clock, pause, type RetryPolicy } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { PlatformApi } from './platform-api.js';
import { PlatformError } from './platform-error.js';
import type { HostedRunRow, PullStore } from './pull-store.js';
import type { PulledRun, RunPuller } from './run-puller.js';

/** How a worker goes about it. */
export interface PullWorkerConfig {
  /** The platform's base URL as the store has it. */
  readonly platform: string;
  /** A run that is not complete is asked for again after so long, in milliseconds. */
  readonly intervalMs: number;
}

/** What a worker works with. */
export interface PullWorkerDeps {
  readonly store: PullStore;
  readonly puller: RunPuller;
  readonly apiOf: (accountId: string) => PlatformApi;
  readonly retryPolicy: RetryPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a worker has done so far. */
export interface PullCounts {
  readonly runCount: number;
  readonly stepCount: number;
  readonly recordCount: number;
  /** Steps whose file could not be read, records that could not be read, and runs that were given up. */
  readonly unreadableCount: number;
  readonly givenUpCount: number;
}

/** A run that could not be had for so long after it was noted is given up, in milliseconds: a week. */
const GIVE_UP_MS = 7 * 86_400_000;
/** What is over is forgotten after so long, in milliseconds: 90 days. Until then it is not downloaded again. */
const FORGET_MS = 90 * 86_400_000;
/** The longest that the worker sleeps, in milliseconds: the wall clock, by which runs are due, may jump. */
const MAX_SLEEP_MS = 60_000;

/**
 * Brings in the hosted runs that wait in the store, one at a time. What fails is tried again, longer and longer after;
 * what is not complete is asked for again; steps that are there are not downloaded again, also after a restart. May be started
 * again after a shutdown.
 */
export class PullWorker implements Component {
  readonly name = 'platform pull';
  /** In words; `undefined` when the last attempt was good. */
  lastError: string | undefined;
  private counted = { runCount: 0, stepCount: 0, recordCount: 0, unreadableCount: 0, givenUpCount: 0 };
  private stop = new AbortController();
  private woken = new AbortController();
  private working: Promise<void> = Promise.resolve();
  /** Failures in a row that say that nothing would work just now. */
  private failureCount = 0;

  constructor(
    private readonly config: PullWorkerConfig,
    private readonly deps: PullWorkerDeps,
  ) {}

  get counts(): PullCounts {
    return this.counted;
  }

  async start(): Promise<void> {
    this.stop = new AbortController();
    await this.deps.store.prune(this.deps.clock.nowUnixMs() - FORGET_MS);
    this.working = this.work();
  }

  /** A run was noted. */
  wake(): void {
    this.woken.abort();
  }

  /** Stops at once; what was begun is begun again at the next start. */
  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    this.woken.abort();
    await this.working;
  }

  private async work(): Promise<void> {
    while (!this.stop.signal.aborted) {
      this.woken = new AbortController();
      try {
        const row = await this.deps.store.findNext(this.config.platform);
        const waitMs = row === undefined ? MAX_SLEEP_MS : row.dueUnixMs - this.deps.clock.nowUnixMs();
        if (row !== undefined && waitMs <= 0) await this.take(row);
        else await pause(this.deps.clock, Math.min(waitMs, MAX_SLEEP_MS), this.woken.signal);
        this.failureCount = 0;
      } catch (error) {
        if (!this.stop.signal.aborted) await this.rest(error);
      }
    }
  }

  /** @throws what says that another run would fare no better just now. */
  private async take(row: HostedRunRow): Promise<void> {
    const { store, puller, apiOf } = this.deps;
    let current = row;
    const onStepDone = async (stepIndex: number) => {
      current = { ...current, doneSteps: [...current.doneSteps, stepIndex] };
      await store.save([current]);
    };
    const options = { knownSteps: row.doneSteps, onStepDone };
    try {
      const pulled = await puller.pull(apiOf(row.accountId), row.runId, options, this.stop.signal);
      this.lastError = undefined;
      this.count(row, pulled);
      await this.settle(current, pulled);
    } catch (error) {
      if (this.stop.signal.aborted) return;
      const isGone = error instanceof PlatformError && error.code === 'notFound';
      await (isGone ? this.giveUp(current, reasonOf(error)) : this.postpone(current, reasonOf(error)));
      if (!isGone) throw error;
    }
  }

  private async settle(row: HostedRunRow, { run, steps, isFinal }: PulledRun): Promise<void> {
    if (isFinal) return this.deps.store.save([{ ...row, state: 'done' }]);
    const failed = steps.find(({ outcome }) => outcome === 'failed');
    if (failed !== undefined) return this.postpone(row, failed.reason ?? '');
    const reason = run.isComplete ? 'its files are not there yet' : `it is ${run.status}`;
    const nowUnixMs = this.deps.clock.nowUnixMs();
    if (isOld(row, nowUnixMs)) return this.giveUp(row, reason);
    await this.deps.store.save([{ ...row, dueUnixMs: nowUnixMs + this.config.intervalMs, attemptCount: 0 }]);
  }

  private async postpone(row: HostedRunRow, reason: string): Promise<void> {
    const { clock, retryPolicy, logger, store } = this.deps;
    this.lastError = reason;
    const nowUnixMs = clock.nowUnixMs();
    if (isOld(row, nowUnixMs)) return this.giveUp(row, reason);
    const attemptCount = row.attemptCount + 1;
    const waitMs = retryPolicy.delayMs(attemptCount, null);
    logger.warn({ ...idsOf(row), reason, waitMs }, 'failed to pull a hosted run; retrying');
    await store.save([{ ...row, attemptCount, dueUnixMs: nowUnixMs + waitMs }]);
  }

  private async giveUp(row: HostedRunRow, reason: string): Promise<void> {
    this.counted = { ...this.counted, givenUpCount: this.counted.givenUpCount + 1 };
    this.deps.logger.error({ ...idsOf(row), reason }, 'gave up on a hosted run; pull it with run-bridge pull --run');
    await this.deps.store.save([{ ...row, state: 'failed' }]);
  }

  private count(row: HostedRunRow, { run, steps, isFinal }: PulledRun): void {
    const { runCount, stepCount, recordCount, unreadableCount } = this.counted;
    let [taken, records, unreadable] = [0, 0, 0];
    for (const { step, outcome, recordCount: count, rejectCount, reason } of steps) {
      if (outcome === 'taken') taken += 1;
      records += count;
      unreadable += rejectCount + (outcome === 'broken' ? 1 : 0);
      if (outcome !== 'broken' && rejectCount === 0) continue;
      const fields = { ...idsOf(row), step: step.index, rejectCount, reason };
      this.deps.logger.warn(fields, 'failed to read all telemetry of a hosted run');
    }
    this.counted = {
      ...this.counted,
      runCount: runCount + (isFinal ? 1 : 0),
      stepCount: stepCount + taken,
      recordCount: recordCount + records,
      unreadableCount: unreadableCount + unreadable,
    };
    if (!isFinal) return;
    const fields = { ...idsOf(row), status: run.status, stepCount: taken, recordCount: records };
    this.deps.logger.info(fields, 'pulled a hosted run');
  }

  /** After a failure that the next run would meet as well. */
  private async rest(error: unknown): Promise<void> {
    this.failureCount += 1;
    this.lastError = reasonOf(error);
    if (!(error instanceof PlatformError)) {
      this.deps.logger.warn({ reason: this.lastError }, 'failed to pull hosted runs; retrying');
    }
    await pause(this.deps.clock, this.deps.retryPolicy.delayMs(this.failureCount, null), this.stop.signal);
  }
}

function isOld({ notedUnixMs }: HostedRunRow, nowUnixMs: number): boolean {
  return nowUnixMs - notedUnixMs > GIVE_UP_MS;
}

function idsOf({ accountId, runId }: HostedRunRow) {
  return { account: accountId, run: runId };
}
