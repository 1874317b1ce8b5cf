import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { SCOPE_ATTRIBUTES, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import type { ExecutionStore, ExpectedArtifacts, FinishResult } from '../storage/execution-store.js';
import type { ExecutionRow, StepReporter, StepRow } from '../storage/executions.js';
import type { RunStore } from '../storage/run-store.js';
import { type CommandEnding, DEFAULT_JOB, type StepPosition, type StepStart } from '../storage/steps.js';
import { StoreError } from '../storage/store-error.js';
import type { StepListener } from './run-event.js';
import type { ScopeFinder } from './scope-finder.js';
import { type StepRegistry, StepRegistryError } from './step-registry.js';

/** What a registry works with. */
export interface LocalStepRegistryDeps {
  readonly store: ExecutionStore;
  /** Returns the arrival time of a trace's last record. */
  readonly runs: Pick<RunStore, 'find'>;
  readonly listeners: readonly StepListener[];
  /** Returns the artifact storage; without it, expected artifacts count as missing. */
  readonly openArtifacts?: () => Promise<Pick<ArtifactStore, 'list'>>;
  /** Whether a command's artifacts lie in the data folder, for another part of this program to upload. Default: none do. */
  readonly areSpooled?: (stepId: string) => boolean;
  /** Finds the job of a command that names none; left out, it is `adhoc`. */
  readonly scopes?: ScopeFinder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether several processes share the registry: then contacts are saved in the store. Default: false. */
  readonly isShared?: boolean;
}

/** A remote program that runs a command reports it regularly; after this long without a report it counts as dead. In milliseconds. */
export const REPORTER_LEASE_MS = 600_000;
/** A run without a running step for this long is finished by itself, in milliseconds: a day. */
const IDLE_RUN_MS = 86_400_000;
const SWEEP_MS = 60_000;
/** Why artifacts of a dead sender are missing. */
const SENDER_GONE = 'the program that uploaded them has gone';

/**
 * The registry of a data folder, in the process that owns the folder. Steps whose reporter has died are closed:
 * those of an earlier process of this folder at the start, those of remote programs after a period of silence.
 */
export class LocalStepRegistry implements StepRegistry, Component {
  readonly name = 'step registry';
  /** Last contact with each remote step, in monotonic milliseconds. */
  private readonly heardOf = new Map<string, number>();
  /** Steps whose artifacts are being uploaded. */
  private readonly uploading = new Set<string>();
  private timer: Timer | null = null;
  private isStopped = false;

  constructor(private readonly deps: LocalStepRegistryDeps) {}

  /** Closes what the last process left open. */
  async start(): Promise<void> {
    // With several processes, none knows which steps of others are still running.
    const left = this.deps.isShared === true ? [] : await this.deps.store.listRunning();
    for (const step of left) {
      // Records in the data folder are imported when it ends.
      if (step.reporter === 'local' && this.deps.areSpooled?.(step.stepId) === true) continue;
      if (step.reporter === 'local') await this.giveUp(step);
      else this.heardOf.set(step.stepId, this.deps.clock.monotonicMs());
    }
    // Not awaited: a bucket may not answer.
    void this.takeUpUploads().catch((error: unknown) => this.reportSweep(error));
    await this.finishIdle();
    this.sweepLater();
  }

  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
  }

  /** @param reporter the program that will report its end; default: this program itself */
  async register(start: StepStart, reporter: StepReporter = 'local'): Promise<StepPosition> {
    const isUploading = this.uploading.has(start.stepId);
    if ((reporter === 'remote' || isUploading) && this.deps.isShared !== true)
      this.heardOf.set(start.stepId, this.deps.clock.monotonicMs());
    return await this.guard(async () => {
      const { store, isShared, clock, listeners } = this.deps;
      const position = await store.register(this.scoped(start), reporter);
      if (isShared === true && reporter === 'remote') await store.noteHeard(start.stepId, clock.nowUnixMs());
      // Telemetry that names the step may have been faster.
      const traceIds = await store.tracesOf(start.stepId);
      if (traceIds.length > 0) for (const listener of listeners) listener.onStepChanged(traceIds);
      return position;
    });
  }

  async attach(stepId: string, traceId: TraceId): Promise<void> {
    if (!(await this.guard(() => this.deps.store.attach(stepId, traceId)))) throw unknownStep(stepId);
    for (const listener of this.deps.listeners) listener.onStepChanged([traceId]);
  }

  async end(stepId: string, ending: CommandEnding, endedUnixMs: number): Promise<void> {
    const ended = await this.guard(() => this.deps.store.end(stepId, ending, endedUnixMs));
    if (ended === undefined) throw unknownStep(stepId);
    if (!this.uploading.has(stepId)) this.heardOf.delete(stepId);
    const traceIds = await this.guard(() => this.deps.store.tracesOf(stepId));
    for (const listener of this.deps.listeners) listener.onStepChanged(traceIds);
    if (ended.isNew && ended.step.run.state === 'finished') this.sayFinished(ended.step.run);
  }

  /** Ends a step whose end nobody saw, when it was last heard of. @throws StepRegistryError */
  async endUnseen(step: Pick<StepRow, 'stepId' | 'startedUnixMs'>): Promise<void> {
    await this.end(step.stepId, { kind: 'unknown' }, await this.lastSignOf(step));
  }

  async expectArtifacts(stepId: string, paths: readonly string[]): Promise<void> {
    if (!(await this.guard(() => this.deps.store.expectArtifacts(stepId, paths)))) throw unknownStep(stepId);
    this.uploading.add(stepId);
  }

  async endArtifacts(stepId: string, reason: string | null): Promise<void> {
    await this.concludeUpload(stepId, reason, reason === null ? 'fail' : 'missing');
  }

  /** @param accountId whose run it is; default: the first account's */
  async finish(runKey: string, accountId?: number): Promise<FinishResult> {
    const result = await this.guard(() => this.deps.store.finish(runKey, accountId));
    if (result.kind === 'finished') this.sayFinished(result.run);
    return result;
  }

  async isCancelled(stepId: string): Promise<boolean> {
    return await this.guard(() => this.deps.store.isCancelled(stepId));
  }

  /** Explicitly given names win; rules fill in the others. */
  private scoped(start: StepStart): StepStart {
    const { scopes } = this.deps;
    if (scopes === undefined) return start;
    const ownAttributes = {
      ...(start.job !== DEFAULT_JOB && { [SCOPE_ATTRIBUTES.job]: start.job }),
      ...(start.environment !== null && { [SCOPE_ATTRIBUTES.environment]: start.environment }),
      ...(start.project !== null && { [SCOPE_ATTRIBUTES.project]: start.project }),
    };
    const resource = { ...UNKNOWN_RESOURCE, attributes: ownAttributes };
    return { ...start, ...scopes.scopeOf({ rawCommand: start.command.join(' '), resource }) };
  }

  private async giveUp(step: StepRow): Promise<void> {
    this.heardOf.delete(step.stepId);
    if (step.ending === null) await this.endUnseen(step);
    await this.endArtifacts(step.stepId, SENDER_GONE);
  }

  /** @param unreadable what to do if artifacts cannot be listed: count all as missing, or try again */
  private async concludeUpload(stepId: string, reason: string | null, unreadable: 'missing' | 'fail'): Promise<void> {
    await this.guard(async () => {
      const { store, clock, logger } = this.deps;
      const expected = await store.expectedArtifacts(stepId);
      if (expected === undefined) return;
      const { runId: run, stepIndex: step, paths } = expected;
      const kept = await this.listKept(expected).catch((cause: unknown) => {
        if (unreadable === 'missing') return new Set<string>();
        throw new StepRegistryError('unavailable', `failed to list artifacts: ${reasonOf(cause)}`, { cause });
      });
      const missing = paths.filter((path) => !kept.has(path));
      if (missing.length === 0) {
        await store.endArtifacts(stepId, null, clock.nowUnixMs());
        return;
      }
      const why = reason ?? 'they were not uploaded';
      await store.endArtifacts(stepId, { paths: missing, reason: why }, clock.nowUnixMs());
      const counts = { expected: paths.length, missing: missing.length };
      logger.warn({ run, step, ...counts, reason: why }, 'a run ended before all of its artifacts were stored');
    });
    this.uploading.delete(stepId);
    this.heardOf.delete(stepId);
  }

  private async listKept({ runId, stepIndex }: ExpectedArtifacts): Promise<ReadonlySet<string>> {
    const store = await this.deps.openArtifacts?.();
    return new Set<string>((await store?.list(runId, stepIndex))?.map(({ path }) => path));
  }

  /** Steps of an earlier process: remote senders may continue, and files in the data folder are uploaded from there. */
  private async takeUpUploads(): Promise<void> {
    const { store, clock, areSpooled, isShared } = this.deps;
    for (const { stepId, reporter } of await store.listUploading()) {
      if (isShared === true || this.uploading.has(stepId)) continue;
      this.uploading.add(stepId);
      this.heardOf.set(stepId, clock.monotonicMs());
      // Where they cannot be listed now, the sweep looks again.
      if (reporter === 'local' && areSpooled?.(stepId) !== true) await this.concludeUpload(stepId, SENDER_GONE, 'fail');
    }
  }

  /** Returns the last sign of life of a step: its last record, else its start. */
  private async lastSignOf({ stepId, startedUnixMs }: Pick<StepRow, 'stepId' | 'startedUnixMs'>): Promise<number> {
    let latest = startedUnixMs;
    for (const traceId of await this.deps.store.tracesOf(stepId)) {
      latest = Math.max(latest, (await this.deps.runs.find(traceId))?.lastSeenUnixMs ?? 0);
    }
    return latest;
  }

  private sayFinished({ runId, runKey, job, stepCount }: ExecutionRow): void {
    this.deps.logger.info({ run: runId, runKey, job, stepCount }, 'a run has no more steps; finishing it');
  }

  private sweepLater(): void {
    if (this.isStopped) return;
    this.timer = this.deps.clock.after(SWEEP_MS, () => {
      this.sweep()
        .catch((error: unknown) => this.reportSweep(error))
        .finally(() => this.sweepLater());
    });
  }

  private reportSweep(error: unknown): void {
    if (this.isStopped) return;
    this.deps.logger.error({ error: String(error) }, 'failed to close abandoned steps; retrying');
  }

  private async sweep(): Promise<void> {
    if (this.deps.isShared === true) await this.sweepShared();
    else await this.sweepOwn();
    await this.finishIdle();
  }

  private async sweepShared(): Promise<void> {
    const { store, clock } = this.deps;
    for (const step of await store.listSilent(clock.nowUnixMs() - REPORTER_LEASE_MS)) await this.giveUp(step);
  }

  private async sweepOwn(): Promise<void> {
    const beforeMs = this.deps.clock.monotonicMs() - REPORTER_LEASE_MS;
    for (const [stepId, heardMs] of this.heardOf) {
      if (heardMs > beforeMs) continue;
      this.heardOf.delete(stepId);
      const step = await this.deps.store.findStep(stepId);
      if (step !== undefined) await this.giveUp(step);
    }
  }

  /** Runs that nobody finishes, and runs without further steps. */
  private async finishIdle(): Promise<void> {
    for (const { runKey, accountId } of await this.deps.store.listIdle(this.deps.clock.nowUnixMs() - IDLE_RUN_MS)) {
      await this.finish(runKey, accountId);
    }
    await this.deps.store.settle(this.deps.clock.nowUnixMs());
  }

  private async guard<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      if (!(cause instanceof StoreError)) throw cause;
      const code = cause.code === 'unstorable' ? 'refused' : 'unavailable';
      throw new StepRegistryError(code, `the step could not be saved: ${cause.message}`, { cause });
    }
  }
}

function unknownStep(stepId: string): StepRegistryError {
  return new StepRegistryError('unknownStep', `step ${stepId} is not registered; register it first`);
}
