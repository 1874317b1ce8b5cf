import { join } from 'node:path';
import type { Logger } from '../../component/logger.js';
import type { TraceId } from '../../record/ids.js';
import type { PlatformApi } from '../../source/platform/platform-api.js';
import { PlatformError } from '../../source/platform/platform-error.js';
import type { PulledRun } from '../../source/platform/pulled-run.js';
import type { HostedRunKey } from '../../store/pull-store.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { ProgressLine } from '../progress-line.js';
import { type OpenedPull, openPull } from './open-pull.js';
import type { PullPlan, WantedRuns } from './pull-plan.js';
import { PullReport } from './pull-report.js';

/** How long a pull waits for destinations, in milliseconds; what they have not got then, the next `serve` sends. */
const EXPORT_MS = 60_000;

/**
 * Brings in one run, or those of a list that are not there yet, and ends. A run that is asked for by its number is
 * downloaded again even if it is there.
 * @throws PlatformError and what opening throws.
 */
export async function pullOnce(invocation: Invocation, plan: PullPlan, logger: Logger): Promise<ExitCode> {
  const { context } = invocation;
  const opened = await openPull(invocation, plan.configuration, logger, 'import');
  const { intake, hosted } = opened;
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
      // What was taken is finished even where the rest failed.
      const isExported = (await intake.app?.finishImport(traceIds, context.stop, EXPORT_MS)) ?? true;
      if (!isExported && (intake.app?.destinations.length ?? 0) > 0) {
        context.stderr.write('run-bridge: some of it is not exported yet; the next run-bridge serve goes on with it\n');
      }
    }
  } finally {
    await opened.close();
  }
  const where = intake.url === undefined ? join(plan.configuration['data-dir'], 'runs') : intake.url;
  context.stderr.write(`${report.summary(`pulled ${intake.url === undefined ? 'into' : 'to'} ${where}`)}\n`);
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

/** The platform's clock, not ours, says what is new: 2100. */
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
