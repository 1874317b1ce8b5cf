import { MAX_WAITING_RUNS } from '../../app/hosted-runs.js';
import type { Logger } from '../../component/logger.js';
import { formatDuration } from '../../config/duration.js';
import { RunWatch } from '../../source/platform/run-watch.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { stopped } from '../stopped.js';
import { whereLines } from '../where-lines.js';
import { openPull } from './open-pull.js';
import type { PullPlan, WantedRuns } from './pull-plan.js';

/** A plan to watch. */
type WatchPlan = PullPlan & { readonly wanted: Extract<WantedRuns, { readonly kind: 'list' | 'watch' }> };

/**
 * Brings in each new run as it completes, until it is told to stop; the next start goes on where this one was.
 * @throws PlatformError when the first look at the platform fails, and what opening throws.
 */
export async function pullWatch(invocation: Invocation, plan: WatchPlan, logger: Logger): Promise<ExitCode> {
  const { context } = invocation;
  const { stderr, stop } = context;
  const { configuration, accountId, wanted } = plan;
  const { 'platform-url': platform, 'platform-interval': intervalMs } = configuration;
  const { intake, hosted, store, close } = await openPull(invocation, configuration, logger, 'follow');
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
    for (const line of whereLines(configuration, intake)) stderr.write(`${line}\n`);
    await stopped(stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    const now = AbortSignal.abort();
    await watch.shutdown(now);
    await hosted.worker.shutdown(now);
    await close();
  }
  const { runCount, recordCount, unreadableCount, givenUpCount } = hosted.worker.counts;
  stderr.write(`pulled ${runCount} runs, ${recordCount} records\n`);
  if (givenUpCount > 0) return EXIT.failed;
  return unreadableCount > 0 ? EXIT.unreadable : EXIT.ok;
}
