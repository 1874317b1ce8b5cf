import { join } from 'node:path';
import { EXIT, type ExitCode, type Invocation, stopped } from '../cli/command.js';
import { readExportConfiguration } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import { ProgressLine } from '../cli/progress-line.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import { formatDuration, parseDurationMs } from '../config/duration.js';
import { quoted } from '../config/mask.js';
import { parsePlatformId } from '../config/platform-settings.js';
import type { SettingContext } from '../config/setting.js';
import { SETTINGS, type SettingKey, type SettingValues } from '../config/settings.js';
import { type Clock, pause } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { isLoopback } from '../core/http-listener.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { cleanText, counted } from '../core/text.js';
import type { TraceId } from '../record/telemetry-record.js';
import { MAX_WAITING_RUNS } from './hosted-runs.js';
import { type OpenedPull, openPull, type PullHost } from './open-pull.js';
import type { PlatformApi } from './platform-api.js';
import { PlatformError } from './platform-error.js';
import type { HostedRunKey, PullStore, WatchScope } from './pull-store.js';
import type { PulledRun } from './run-puller.js';

/** What `run-bridge pull` does. @throws CliError, ConfigurationError, PlatformError, StoreError, OutputError, ConsumeError */
export async function pull(invocation: Invocation, host: PullHost): Promise<ExitCode> {
  const { stderr } = invocation.context;
  const configuration = await readExportConfiguration(invocation);
  const plan = planPull(invocation, configuration);
  const logger = loggerOf(configuration, invocation.context);
  const url = new URL(plan.configuration['platform-url']);
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    stderr.write(`run-bridge: the token goes to ${url.origin} unencrypted; use https:// where the platform has it\n`);
  }
  return plan.wanted.kind === 'watch'
    ? pullWatch(invocation, { ...plan, wanted: plan.wanted }, logger, host)
    : pullOnce(invocation, { ...plan, wanted: plan.wanted }, logger, host);
}

/** How long a pull waits for destinations, in milliseconds; what they have not got then, the next `serve` sends. */
const EXPORT_MS = 60_000;

/**
 * Pulls one run, or the missing ones of a list, and ends. A run requested by its id is
 * downloaded again even if it exists.
 * @throws PlatformError and the errors of opening.
 */
async function pullOnce(invocation: Invocation, plan: PullPlan, logger: Logger, host: PullHost): Promise<ExitCode> {
  const { context } = invocation;
  const opened = await openPull(invocation, plan.configuration, logger, host, false);
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
  { hosted }: OpenedPull,
  { accountId, wanted }: PullPlan,
  api: PlatformApi,
  runId: string,
  report: PullReport,
  context: Invocation['context'],
): Promise<PulledRun | undefined> {
  const key: HostedRunKey = { platform: hosted.storeName, accountId, runId };
  const isOne = wanted.kind === 'one';
  if (!isOne && (await hosted.store.find(key))?.state === 'done') {
    report.addKnown();
    return undefined;
  }
  const progress = new ProgressLine(context);
  try {
    const onProgress = (at: Parameters<ProgressLine['show']>[0]) => progress.show(at);
    const pulled = await hosted.puller.pull(api, runId, { onProgress }, context.stop).finally(() => progress.end());
    for (const line of report.add(pulled)) context.stderr.write(`${cleanText(line)}\n`);
    if (pulled.isFinal) {
      const nowUnixMs = context.clock.nowUnixMs();
      const times = { notedUnixMs: nowUnixMs, dueUnixMs: nowUnixMs };
      await hosted.store.save([{ ...key, ...times, state: 'done', attemptCount: 0, doneSteps: [] }]);
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
async function pullWatch(invocation: Invocation, plan: WatchPlan, logger: Logger, host: PullHost): Promise<ExitCode> {
  const { context } = invocation;
  const { stderr, stop } = context;
  const { configuration, accountId, wanted } = plan;
  const { 'platform-url': platform, 'platform-interval': intervalMs } = configuration;
  const opened = await openPull(invocation, configuration, logger, host, true);
  const { hosted } = opened;
  const watch = new RunWatch(
    {
      scope: { platform: hosted.storeName, accountId, jobId: wanted.jobId },
      intervalMs,
      sinceUnixMs: wanted.sinceUnixMs,
      maxWaiting: MAX_WAITING_RUNS,
    },
    {
      api: hosted.apiOf(accountId),
      store: hosted.store,
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

/** What a watch looks for. */
export interface RunWatchConfig {
  readonly scope: WatchScope;
  /** How often, in milliseconds. */
  readonly intervalMs: number;
  /** Where it begins when it never ran before, and how far it looks back at its start, as a time of creation. */
  readonly sinceUnixMs: number;
  /** More runs than this do not wait at a time; the others are found when some are done. */
  readonly maxWaiting: number;
}

/** What a watch works with. */
export interface RunWatchDeps {
  readonly api: PlatformApi;
  readonly store: PullStore;
  /** Called when there may be something new in the store. */
  readonly onNoted: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A run may be listed a while after others that were created later, in milliseconds. */
const OVERLAP_MS = 10 * 60_000;
/** The platform's clock may be ahead of ours, in milliseconds. */
const MAX_AHEAD_MS = 86_400_000;

/**
 * Finds new runs of an account by asking for its list again and again, and notes them in the store. It goes on where it
 * stopped, by a cursor in the store: the time of creation up to which all runs are noted.
 */
export class RunWatch implements Component {
  readonly name = 'platform watch';
  private readonly stop = new AbortController();
  private working: Promise<void> = Promise.resolve();

  constructor(
    private readonly config: RunWatchConfig,
    private readonly deps: RunWatchDeps,
  ) {}

  /**
   * Looks once, so that a wrong token or account is reported at once, then goes on in the background.
   * @param stop gives up the first look
   * @throws PlatformError
   */
  async start(stop?: AbortSignal): Promise<void> {
    stop?.addEventListener('abort', () => this.stop.abort(stop.reason), { once: true });
    const cursor = await this.deps.store.findCursor(this.config.scope);
    await this.look(Math.min(cursor ?? Number.POSITIVE_INFINITY, this.config.sinceUnixMs));
    this.working = this.work();
  }

  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.stop.abort();
    await this.working;
  }

  private async work(): Promise<void> {
    for (;;) {
      await pause(this.deps.clock, this.config.intervalMs, this.stop.signal);
      if (this.stop.signal.aborted) return;
      try {
        const cursor = await this.deps.store.findCursor(this.config.scope);
        await this.look(cursor ?? this.config.sinceUnixMs);
      } catch (error) {
        if (this.stop.signal.aborted) return;
        const reason = reasonOf(error);
        this.deps.logger.warn({ reason }, 'failed to ask the platform for new runs; retrying');
      }
    }
  }

  /** Notes the runs created since a time, page by page; the cursor follows. */
  private async look(fromUnixMs: number): Promise<void> {
    const { api, store, onNoted, clock, logger } = this.deps;
    const { scope, maxWaiting } = this.config;
    const nowUnixMs = clock.nowUnixMs();
    const query = {
      jobId: scope.jobId,
      createdFromUnixMs: Math.max(0, fromUnixMs - OVERLAP_MS),
      createdToUnixMs: nowUnixMs + MAX_AHEAD_MS,
    };
    for await (const runs of api.listRuns(query, this.stop.signal)) {
      const keys = runs.map(({ runId }) => ({ platform: scope.platform, accountId: scope.accountId, runId }));
      if (!(await store.add(keys, nowUnixMs, maxWaiting))) {
        logger.info({ maxWaiting }, 'too many hosted runs are waiting; the search for new ones is paused');
        break;
      }
      onNoted();
      const newest = Math.max(...runs.map(({ createdUnixMs }) => createdUnixMs ?? 0));
      if (newest > ((await store.findCursor(scope)) ?? 0)) await store.saveCursor(scope, newest);
    }
  }
}

/** What a pull was asked to do. */
export interface PullPlan {
  /** With the platform as the flags have it. */
  readonly configuration: Configuration;
  readonly accountId: string;
  readonly wanted: WantedRuns;
}

/** Which runs. */
export type WantedRuns =
  | { readonly kind: 'one'; readonly runId: string }
  | { readonly kind: 'list' | 'watch'; readonly jobId: string | null; readonly sinceUnixMs: number };

/** How far a watch looks back at its start by default, in milliseconds: a day. */
const WATCH_BACK_MS = 86_400_000;

/** Puts flags and configuration together. @throws ConfigurationError with every problem at once. */
export function planPull({ context, flags, switches }: Invocation, resolved: Configuration): PullPlan {
  const problems: string[] = [];
  const settingContext: SettingContext = { baseDir: context.workingDir, homeDir: context.homeDir };
  const configuration: Configuration = {
    ...resolved,
    'platform-url': setting('base-url', 'platform-url'),
    'platform-account': setting('account', 'platform-account'),
    'platform-interval': setting('interval', 'platform-interval'),
  };
  const { 'platform-url': url, 'platform-account': accountId, platformSecrets } = configuration;
  if (url === 'off' && flags['base-url'] === undefined)
    problems.push('--base-url is missing: name the platform, such as https://cloud.example.com');
  if (accountId === 'off' && flags.account === undefined)
    problems.push("--account is missing: name the account's number (it is in the platform's addresses)");
  if (platformSecrets.token === null) {
    problems.push('RUN_BRIDGE_PLATFORM_TOKEN is not set: set it to a token of the platform that may read the account');
  }
  const wanted = findWanted();
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { configuration, accountId, wanted };

  function setting<K extends SettingKey>(flag: string, key: K): SettingValues[K] {
    const text = flags[flag];
    if (text === undefined) return resolved[key];
    const value = SETTINGS[key].parse(text, settingContext);
    if (value !== undefined) return value;
    problems.push(`--${flag}: ${quoted(text)} is not ${SETTINGS[key].expected}`);
    return resolved[key];
  }

  function findWanted(): WantedRuns {
    const isWatch = switches.has('watch');
    const runId = id('run');
    const jobId = id('job');
    const sinceUnixMs = since();
    if (flags.interval !== undefined && !isWatch) problems.push('--interval goes with --watch');
    if (flags.run !== undefined) {
      const others = [...['job', 'since'].filter((flag) => flags[flag] !== undefined), ...(isWatch ? ['watch'] : [])];
      if (others.length > 0)
        problems.push(`--run is one run: leave out ${others.map((flag) => `--${flag}`).join(' and ')}`);
      return { kind: 'one', runId: runId ?? '' };
    }
    if (!isWatch && flags.since === undefined) {
      problems.push(
        'no runs given: pass --run ID, --since TIME (such as 24h), or --watch; --job ID goes with the last two',
      );
    }
    const defaultSince = context.clock.nowUnixMs() - WATCH_BACK_MS;
    return { kind: isWatch ? 'watch' : 'list', jobId, sinceUnixMs: sinceUnixMs ?? defaultSince };
  }

  function id(flag: string): string | null {
    const text = flags[flag];
    if (text === undefined) return null;
    const parsed = parsePlatformId(text);
    if (parsed === undefined) problems.push(`--${flag}: ${JSON.stringify(text)} is not a number of the platform`);
    return parsed ?? null;
  }

  function since(): number | undefined {
    if (flags.since === undefined) return undefined;
    const unixMs = parseSinceTime(flags.since, context.clock.nowUnixMs());
    if (unixMs === undefined) {
      problems.push(
        `--since: ${JSON.stringify(flags.since)} is not a time in the past such as 24h or 2026-01-31T08:00Z`,
      );
    }
    return unixMs;
  }
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:?\d\d)?$/i;
/** A hundred years. */
const MAX_BACK_MS = 36_525 * 86_400_000;

/**
 * Parses a time: `24h` or `30d` ago, or ISO 8601, in UTC without a zone.
 * @returns milliseconds since the Unix epoch; `undefined` if it is neither, or in the future
 */
export function parseSinceTime(text: string, nowUnixMs: number): number | undefined {
  const backMs = parseDurationMs(text, MAX_BACK_MS);
  if (backMs !== undefined) return nowUnixMs - backMs;
  const [, date, time = '00:00', zone = 'Z'] = ISO_TIME.exec(text.trim()) ?? [];
  const unixMs = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(unixMs) || unixMs > nowUnixMs ? undefined : unixMs;
}
