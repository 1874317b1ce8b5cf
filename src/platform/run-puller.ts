import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReadingProgress } from '../cli/progress-line.js';
import { type Clock, pause } from '../core/clock.js';
import type { Guard } from '../core/guard.js';
import {
  offerRead,
  openParquetFile,
  ReadingCounter,
  type RecordSource,
  type Reject,
  type RejectFile,
  SourceError,
} from '../files/feature.js';
import type { Resource, ResourceValue } from '../record/attributes.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { HostedSteps } from './hosted-steps.js';
import type { PlatformApi } from './platform-api.js';
import { PlatformError } from './platform-error.js';
import type { PlatformRun, PlatformStep } from './platform-run.js';

/** Takes a step's records; `finish` is called when all of them were handed over. */
export type StepConsumer = RecordConsumer & { finish?(): Promise<void> };

/** What a puller works with. */
export interface RunPullerDeps {
  /** Where downloads lie while they are read; one at a time. */
  readonly folder: string;
  /** What a step's file may have, in bytes. */
  readonly maxFileBytes: number;
  /** Gives what takes a step's records. */
  readonly openConsumer: () => StepConsumer;
  /** Gets the run's steps entered; none when left out. */
  readonly steps?: HostedSteps;
  /** Keeps the rows that are no records, with their place; they are only counted when left out. */
  readonly rejects?: Pick<RejectFile, 'add'>;
  /** Asked before a download; none when left out. */
  readonly guards?: readonly Guard[];
  readonly clock: Clock;
}

/** How a run is pulled. */
export interface PullOptions {
  /** Indices of steps that were taken before. */
  readonly knownSteps?: readonly number[];
  /** Called when a step needs not be asked for again. */
  readonly onStepDone?: (stepIndex: number) => Promise<void>;
  readonly onProgress?: (progress: ReadingProgress) => void;
}

/** How long to wait for the files of a run that is reported as complete, after its end, in milliseconds. */
const FILES_DUE_MS = 15 * 60_000;

/**
 * Brings in a hosted run: downloads the telemetry of its steps, one after the other, into a file of bounded size, and
 * stores the records with what the platform says of the run as their resource. What is missing of one step is reported with
 * that step; the others go on.
 */
export class RunPuller {
  constructor(private readonly deps: RunPullerDeps) {}

  /**
   * @throws PlatformError for the run itself, ConsumeError when records are not taken, StepRegistryError, what `signal`
   * aborts with.
   */
  async pull(api: PlatformApi, runId: string, options: PullOptions, signal: AbortSignal): Promise<PulledRun> {
    const run = await api.findRun(runId, signal);
    if (!run.isComplete) return { run, steps: [], isFinal: false };
    if (run.hasArtifacts === false && (await api.hasNothing(runId, signal))) {
      return { run, steps: [], isFinal: !this.mayFilesCome(run) };
    }
    const steps: PulledStep[] = [];
    await this.deps.steps?.begin(api.accountId, run);
    for (const step of run.steps) {
      const pulled = await this.pullStep(api, run, step, options, signal);
      steps.push(pulled);
      if (pulled.outcome !== 'failed') await this.deps.steps?.end(api.accountId, run, step, pulled.traceIds);
      if (pulled.outcome === 'taken' || pulled.outcome === 'broken') await options.onStepDone?.(step.index);
    }
    const hasSome = steps.some(({ outcome }) => outcome !== 'none');
    const isMissing = steps.some(({ outcome }) => outcome === 'failed') || (!hasSome && this.mayFilesCome(run));
    return { run, steps, isFinal: !isMissing };
  }

  private mayFilesCome({ hasArtifacts, finishedUnixMs }: PlatformRun): boolean {
    if (hasArtifacts === true || finishedUnixMs === null) return false;
    return this.deps.clock.nowUnixMs() - finishedUnixMs < FILES_DUE_MS;
  }

  private async pullStep(
    api: PlatformApi,
    run: PlatformRun,
    step: PlatformStep,
    options: PullOptions,
    signal: AbortSignal,
  ): Promise<PulledStep> {
    if (options.knownSteps?.includes(step.index)) return nothing(step, 'known');
    await this.waitForRoom(signal);
    const path = join(this.deps.folder, `${run.runId}-${step.index}.parquet`);
    try {
      const { maxFileBytes } = this.deps;
      const sizeBytes = await api.fetchTelemetry(run.runId, step.index, { path, maxBytes: maxFileBytes }, signal);
      if (sizeBytes === null) return nothing(step, 'none');
      for (const guard of this.deps.guards ?? []) guard.onBody(sizeBytes);
      return await this.read(
        await openParquetFile(path, sizeBytes),
        { accountId: api.accountId, run, step },
        options,
        signal,
      );
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code === 'unauthorized') throw error;
      const outcome = error.code === 'tooLarge' || error.code === 'malformed' ? 'broken' : 'failed';
      return { ...nothing(step, outcome), reason: error.message };
    } finally {
      await rm(path, { force: true });
    }
  }

  /** A file that breaks off gives what could be read of it. */
  private async read(
    file: RecordSource,
    placed: Omit<HostedStep, 'stepId'>,
    { onProgress }: PullOptions,
    signal: AbortSignal,
  ): Promise<PulledStep> {
    const stepId = this.deps.steps?.stepId(placed.accountId, placed.run, placed.step) ?? null;
    const resource = platformResource({ ...placed, stepId });
    const consumer = this.deps.openConsumer();
    const counter = new ReadingCounter();
    const traceIds = new Set<TraceId>();
    let reason: string | null = null;
    try {
      for await (const chunk of file.read(signal)) {
        const batches = chunk.delivery.batches.map((batch) => ({ ...batch, resource }));
        await offerRead(consumer, { batches, passthrough: [] }, { clock: this.deps.clock, signal });
        for (const { traceId } of batches) traceIds.add(traceId);
        counter.add(chunk);
        await this.deps.rejects?.add(`run ${placed.run.runId} step ${placed.step.index}`, chunk.rejects);
        onProgress?.(counter.progress(chunk.bytesRead, file.sizeBytes));
      }
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      reason = error.message.replaceAll(file.path, 'its Parquet file');
    }
    await consumer.finish?.();
    const { recordCount, rejectCount, rejects } = counter.result();
    const outcome = reason === null ? 'taken' : 'broken';
    return { step: placed.step, outcome, recordCount, traceIds: [...traceIds], rejectCount, rejects, reason };
  }

  /** Waits while the disk or memory takes no more. */
  private async waitForRoom(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const shortage = this.deps.guards?.map((guard) => guard.findShortage(0)).find((found) => found !== undefined);
      if (shortage === undefined) return;
      await pause(this.deps.clock, shortage.retryAfterMs, signal);
    }
  }
}

function nothing(step: PlatformStep, outcome: PulledStep['outcome']): PulledStep {
  return { step, outcome, recordCount: 0, traceIds: [], rejectCount: 0, rejects: [], reason: null };
}

/** A step of a hosted run, and where it is. */
export interface HostedStep {
  readonly accountId: string;
  readonly run: PlatformRun;
  readonly step: PlatformStep;
  /** The step's id in the registry of steps; `null` where it is not entered there. */
  readonly stepId: string | null;
}

/**
 * What the platform says of a run, as the resource of its records: it stays with them on disk, in hand-overs and in
 * exports, so that runs are found by it in any backend. Names are OpenTelemetry's (CI/CD, VCS and deployment) where there
 * are some. Commands, causes and messages are left out, since they may hold literals.
 */
export function platformResource({ accountId, run, step, stepId }: HostedStep): Resource {
  const attributes: Readonly<Record<string, ResourceValue | null>> = {
    'run_bridge.step.id': stepId,
    'cicd.pipeline.name': run.jobName,
    'cicd.pipeline.run.id': run.runId,
    'cicd.pipeline.run.url.full': run.href,
    'cicd.pipeline.task.name': String(step.index),
    'cicd.pipeline.task.run.id': step.stepId,
    'deployment.environment.name': run.environmentName,
    'vcs.ref.head.revision': run.gitSha,
    'vcs.ref.head.name': run.gitBranch,
    'run_bridge.platform.account_id': accountId,
    'run_bridge.platform.project_id': run.projectId,
    'run_bridge.platform.environment_id': run.environmentId,
    'run_bridge.platform.job_id': run.jobId,
    'run_bridge.platform.run_id': run.runId,
    'run_bridge.platform.run_status': run.status,
    'run_bridge.platform.step_index': step.index,
  };
  const known = Object.entries(attributes).filter((entry): entry is [string, ResourceValue] => entry[1] !== null);
  return { attributes: Object.fromEntries(known), scope: { name: '', version: '' } };
}

/** What became of asking for a hosted run. */
export interface PulledRun {
  readonly run: PlatformRun;
  /** In order; empty where the run is not complete yet. */
  readonly steps: readonly PulledStep[];
  /** Whether asking again later would give no more. */
  readonly isFinal: boolean;
}

/** What became of a step's telemetry. */
export interface PulledStep {
  readonly step: PlatformStep;
  /**
   * `taken`: its records are durable. `none`: it has no telemetry. `known`: it was taken before. `broken`: its file
   * cannot be read, or not to its end. `failed`: it could not be downloaded this time.
   */
  readonly outcome: 'taken' | 'none' | 'known' | 'broken' | 'failed';
  readonly recordCount: number;
  readonly traceIds: readonly TraceId[];
  readonly rejectCount: number;
  /** The first of them. */
  readonly rejects: readonly Reject[];
  /** Why it is broken or failed, in a sentence or two; `null` otherwise. */
  readonly reason: string | null;
}
