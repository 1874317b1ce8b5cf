import { join } from 'node:path';
import type { Invocation } from '../cli/command-line.js';
import { EXIT, type ExitCode } from '../cli/exit-code.js';
import { loggerOf } from '../cli/logger-of.js';
import { ProgressLine } from '../cli/progress-line.js';
import { resolveForCommand } from '../cli/resolve-for-command.js';
import { stopped } from '../cli/stopped.js';
import type { Configuration } from '../config/configuration.js';
import { formatDuration } from '../config/duration.js';
import { counted } from '../core/counted.js';
import { isLoopback } from '../core/is-loopback.js';
import type { Logger } from '../core/logger.js';
import type { TraceId } from '../record/ids.js';
import type { HostedRunKey, PullStore } from '../storage/pull-store.js';
import { type HostedRuns, MAX_WAITING_RUNS } from './hosted-runs.js';
import type { PlatformApi } from './platform-api.js';
import { PlatformError } from './platform-error.js';
import { type PullPlan, planPull, type WantedRuns } from './pull-plan.js';
import type { PulledRun } from './run-puller.js';
import { RunWatch } from './run-watch.js';

/** What a pull works with. */
export interface OpenedPull {
  readonly hosted: HostedRuns;
  readonly store: PullStore;
  /** The bridge that takes the records; `undefined` where they go into the data folder. */
  readonly url: string | undefined;
  /** Where records go, as `serve` says it. */
  readonly whereLines: readonly string[];
  /**
   * Finishes the runs that came, and exports them as far as destinations take them in `maxMs`.
   * @returns whether everything was exported
   */
  finish(traceIds: ReadonlySet<TraceId>, maxMs: number): Promise<boolean>;
  /** @throws AggregateError when not everything ended cleanly. */
  close(): Promise<void>;
}

/** Locks the data folder, or finds the bridge that has it. @throws CliError, ConfigurationError, StoreError, OutputError */
export interface OpenPull {
  /** Runs are finished together, at the end. */
  once(invocation: Invocation, configuration: Configuration, logger: Logger): Promise<OpenedPull>;
  /** Each run is finished when it has come. */
  watching(invocation: Invocation, configuration: Configuration, logger: Logger): Promise<OpenedPull>;
}

/** What `run-bridge pull` does. @throws CliError, ConfigurationError, PlatformError, StoreError, OutputError, ConsumeError */
export async function pull(invocation: Invocation, openPull: OpenPull): Promise<ExitCode> {
  const { stderr } = invocation.context;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
  const plan = planPull(invocation, configuration);
  const logger = loggerOf(configuration, invocation.context);
  const url = new URL(plan.configuration['platform-url']);
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    stderr.write(`run-bridge: the token goes to ${url.origin} unencrypted; use https:// where the platform has it\n`);
  }
  return plan.wanted.kind === 'watch'
    ? pullWatch(invocation, { ...plan, wanted: plan.wanted }, logger, openPull)
    : pullOnce(invocation, { ...plan, wanted: plan.wanted }, logger, openPull);
}

/** How long a pull waits for destinations, in milliseconds; what they have not got then, the next `serve` sends. */
const EXPORT_MS = 60_000;

/**
 * Pulls one run, or the missing ones of a list, and ends. A run requested by its id is
 * downloaded again even if it exists.
 * @throws PlatformError and the errors of opening.
 */
async function pullOnce(invocation: Invocation, plan: PullPlan, logger: Logger, openPull: OpenPull): Promise<ExitCode> {
  const { context } = invocation;
  const opened = await openPull.once(invocation, plan.configuration, logger);
  const { hosted, url } = opened;
  const report = new PullReport();
  const traceIds = new Set<TraceId>();
  try {
    try {
      const api = hosted.apiOf(plan.accountId);
      for await (const runId of runIdsOf(plan.wanted, api, context.stop)) {
        const pulled = await pullRun(opened, plan, api, runId, report, context);
        for (const step of pulled?.steps ?? []) for (const traceId of step.traceIds) traceIds.add(traceId);
      }
    } finally {
      // Accepted records are finished even if others failed.
      if (!(await opened.finish(traceIds, EXPORT_MS))) {
        context.stderr.write('run-bridge: not everything is exported yet; the next run-bridge serve continues\n');
      }
    }
  } finally {
    await opened.close();
  }
  const where = url ?? join(plan.configuration['data-dir'], 'runs');
  context.stderr.write(`${report.summary(`pulled ${url === undefined ? 'into' : 'to'} ${where}`)}\n`);
  return context.stop.aborted ? EXIT.failed : report.exitCode(plan.wanted.kind === 'one');
}

async function* runIdsOf(wanted: WantedRuns, api: PlatformApi, signal: AbortSignal): AsyncGenerator<string> {
  if (wanted.kind === 'one') {
    yield wanted.runId;
    return;
  }
  const query = {
    jobId: wanted.jobId,
    createdFromUnixMs: wanted.sinceUnixMs,
    createdToUnixMs: FAR_AHEAD_UNIX_MS,
  };
  for await (const runs of api.listRuns(query, signal)) for (const { runId } of runs) yield runId;
}

/** New runs are determined by the platform's clock, not ours: 2100. */
const FAR_AHEAD_UNIX_MS = 4_102_444_800_000;

async function pullRun(
  { hosted, store }: OpenedPull,
  { accountId, wanted }: PullPlan,
  api: PlatformApi,
  runId: string,
  report: PullReport,
  context: Invocation['context'],
): Promise<PulledRun | undefined> {
  const key: HostedRunKey = { platform: hosted.storeName, accountId, runId };
  const isOne = wanted.kind === 'one';
  if (!isOne && (await store.find(key))?.state === 'done') {
    report.addKnown();
    return undefined;
  }
  const progress = new ProgressLine(context);
  try {
    const onProgress = (at: Parameters<ProgressLine['show']>[0]) => progress.show(at);
    const pulled = await hosted.puller.pull(api, runId, { onProgress }, context.stop).finally(() => progress.end());
    for (const line of report.add(pulled)) context.stderr.write(`${line}\n`);
    if (pulled.isFinal) {
      const nowUnixMs = context.clock.nowUnixMs();
      const times = { notedUnixMs: nowUnixMs, dueUnixMs: nowUnixMs };
      await store.save([{ ...key, ...times, state: 'done', attemptCount: 0, doneSteps: [] }]);
    }
    return pulled;
  } catch (error) {
    const isGone = error instanceof PlatformError && error.code === 'notFound';
    if (isOne || !isGone) throw error;
    report.addGone();
    return undefined;
  }
}

/** Counts and reports pulled runs. */
export class PullReport {
  private readonly counts = { taken: 0, empty: 0, incomplete: 0, known: 0, gone: 0 };
  private recordCount = 0;
  private rejectCount = 0;
  private brokenCount = 0;
  private failedCount = 0;

  /** @returns lines on the run: its outcome, and what failed. */
  add(pulled: PulledRun): readonly string[] {
    const { run, steps } = pulled;
    const name = `run ${run.runId} (${run.jobName ?? `job ${run.jobId ?? 'unknown'}`}, ${run.status})`;
    if (!run.isComplete) {
      this.counts.incomplete += 1;
      return [`${name}: not complete yet`];
    }
    const taken = steps.filter(({ outcome }) => outcome === 'taken' || outcome === 'known');
    const recordCount = steps.reduce((sum, step) => sum + step.recordCount, 0);
    this.recordCount += recordCount;
    const troubles = steps.flatMap(({ step, outcome, rejectCount, reason }) => {
      if (outcome === 'broken') this.brokenCount += 1;
      if (outcome === 'failed') this.failedCount += 1;
      this.rejectCount += rejectCount;
      const rejects = rejectCount > 0 ? [`${counted(rejectCount, 'record')} could not be read`] : [];
      const parts = [...(reason === null ? [] : [reason]), ...rejects];
      return parts.length === 0 ? [] : [`  step ${step.index}: ${parts.join('; ')}`];
    });
    if (taken.length === 0 && troubles.length === 0) {
      this.counts.empty += 1;
      return [`${name}: no telemetry${pulled.isFinal ? '' : ' yet; it may come within some minutes'}`];
    }
    this.counts.taken += 1;
    return [`${name}: ${counted(recordCount, 'record')} of ${counted(taken.length, 'step')}`, ...troubles];
  }

  /** A run was pulled before. */
  addKnown(): void {
    this.counts.known += 1;
  }

  /** A run disappeared while it was requested. */
  addGone(): void {
    this.counts.gone += 1;
  }

  /** @param where for example `pulled into ./data/runs` */
  summary(where: string): string {
    const { taken, empty, incomplete, known, gone } = this.counts;
    const rest = [
      [empty, 'without telemetry'],
      [incomplete, 'not complete yet'],
      [known, 'there already'],
      [gone, 'gone'],
    ] as const;
    const further = rest.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
    return [`${where}: ${counted(taken, 'run')}, ${counted(this.recordCount, 'record')}`, ...further].join('; ');
  }

  /** @param isOne whether a single run was asked for, which then is to be there */
  exitCode(isOne: boolean): ExitCode {
    if (this.failedCount > 0 || (isOne && this.counts.incomplete + this.counts.gone > 0)) return EXIT.failed;
    return this.brokenCount + this.rejectCount > 0 ? EXIT.unreadable : EXIT.ok;
  }
}

/** A plan to watch. */
type WatchPlan = PullPlan & { readonly wanted: Extract<WantedRuns, { readonly kind: 'list' | 'watch' }> };

/**
 * Pulls each new run as it completes, until it is stopped; the next start continues from there.
 * @throws PlatformError if the first request to the platform fails, and the errors of opening.
 */
async function pullWatch(
  invocation: Invocation,
  plan: WatchPlan,
  logger: Logger,
  openPull: OpenPull,
): Promise<ExitCode> {
  const { context } = invocation;
  const { stderr, stop } = context;
  const { configuration, accountId, wanted } = plan;
  const { 'platform-url': platform, 'platform-interval': intervalMs } = configuration;
  const opened = await openPull.watching(invocation, configuration, logger);
  const { hosted, store } = opened;
  const watch = new RunWatch(
    {
      scope: { platform: hosted.storeName, accountId, jobId: wanted.jobId },
      intervalMs,
      sinceUnixMs: wanted.sinceUnixMs,
      maxWaiting: MAX_WAITING_RUNS,
    },
    {
      api: hosted.apiOf(accountId),
      store,
      onNoted: () => hosted.worker.wake(),
      clock: context.clock,
      logger,
    },
  );
  try {
    await watch.start(stop);
    await hosted.worker.start();
    const which = wanted.jobId === null ? '' : `, job ${wanted.jobId}`;
    stderr.write(`watches   account ${accountId}${which} of ${platform} every ${formatDuration(intervalMs)}\n`);
    for (const line of opened.whereLines) stderr.write(`${line}\n`);
    await stopped(stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    const now = AbortSignal.abort();
    await watch.shutdown(now);
    await hosted.worker.shutdown(now);
    await opened.close();
  }
  const { runCount, recordCount, unreadableCount, givenUpCount } = hosted.worker.counts;
  stderr.write(`pulled ${runCount} runs, ${recordCount} records\n`);
  if (givenUpCount > 0) return EXIT.failed;
  return unreadableCount > 0 ? EXIT.unreadable : EXIT.ok;
}
