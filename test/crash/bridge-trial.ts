import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../tool/until.js';
import { bridgeVictim } from './bridge-victim.js';
import { CountingSink } from './counting-sink.js';
import type { CrashRow } from './crash-table.js';
import { crashRepeatedly, type KillCounts } from './crash-trial.js';
import { ExpectedRuns } from './expected-runs.js';
import { freePorts } from './free-ports.js';
import { Load } from './load.js';
import { traceIdOf } from './load-ids.js';
import { auditParquet, type ParquetFigures } from './parquet-audit.js';
import { pendingRuns } from './pending-runs.js';
import { auditRecordLogs, type RecordLogFigures } from './record-log-audit.js';
import { isJudgedToItsEnd, isWritingParquet } from './run-folder.js';
import { RunPlan } from './run-plan.js';
import { SeededRandom } from './seeded-random.js';
import { auditState } from './state-audit.js';
import { type Tally, tally } from './tally.js';
import { tearLastLine } from './torn-line.js';
import type { TrialOptions } from './trial-options.js';
import { Victim } from './victim.js';

/** What was found after the program was killed, restarted a last time, and had its time to catch up. */
export interface BridgeTrial {
  readonly row: CrashRow;
  readonly counts: KillCounts;
  readonly runCount: number;
  readonly resentCount: number;
  readonly drainMs: number;
  /** Of the last SIGTERM. */
  readonly exitCode: number | null;
  /** Answers that no retry mends. */
  readonly refusals: readonly string[];
  readonly log: RecordLogFigures;
  readonly parquet: ParquetFigures;
  readonly sinkSpans: Tally;
  readonly sinkLogs: Tally;
  /** Spans that the sink got again without a kill between. */
  readonly repeatedInLife: number;
  /** Of those that it got again after a kill: how many requests before the kill they had come, at most. */
  readonly furthestRepeat: number;
  /** What does not agree in state.db and run.json. */
  readonly problems: readonly string[];
}

/** Runs whose Parquet may be in the making when a look is taken. */
const RECENT_RUNS = 24;
const REST_MS = 500;
const MAX_GAP_MS = 20;
/** After how many of the kills a record log ends in the middle of a line. */
const TORN_LINE_RATE = 0.3;
/** Runs are over soon after their last record, so that many end in a short trial. */
const TIMES = ['--invocation-quiet', '300ms', '--event-hold', '200ms'];

/** Kills the built program under load and under export, and looks at all that it kept and sent. */
export async function tryBridge({ plan: kills, seed, cleanUp }: TrialOptions): Promise<BridgeTrial> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-crash-'));
  if (process.env.CRASH_KEEP === undefined) cleanUp.folder(dataFolder);
  else console.log(`kept: ${dataFolder}`);
  const sink = await CountingSink.listen({ delayMs: 10, failureRate: 0.03, random: new SeededRandom(seed + 1) });
  cleanUp.add(() => sink.close());
  const [httpPort = 0, webPort = 0] = await freePorts(2, 21_000);
  const victim = new Victim(bridgeVictim({ dataFolder, httpPort, webPort, sinkPort: sink.port, args: TIMES }));
  cleanUp.add(() => victim.end('SIGKILL'));
  const random = new SeededRandom(seed);
  const plan = new RunPlan(random);
  const expected = new ExpectedRuns();
  const gaps = new SeededRandom(seed + 2);
  const load = new Load(plan, {
    port: httpPort,
    engines: 12,
    gapMs: () => gaps.between(0, MAX_GAP_MS),
    onAcknowledged: (run, body) => expected.add(run, body),
  });
  const counts = await crashRepeatedly(kills, {
    victim,
    load,
    sink,
    random,
    onDead: () => {
      sink.noteKill();
      if (random.next() < TORN_LINE_RATE) tearLastLine(dataFolder, [...load.inProgress], random);
    },
    isWritingParquet: () => isWritingParquet(dataFolder, recentTraceIds(plan.begunCount)),
  });
  const runs = expected.list;
  const { spans } = expected;
  const drainMs = await drain(webPort, () => runs.every(({ traceId }) => isJudgedToItsEnd(dataFolder, traceId)));
  const exitCode = await victim.end('SIGTERM');
  const log = auditRecordLogs(dataFolder, runs);
  const parquet = await auditParquet(dataFolder, runs);
  const sinkSpans = tally(spans, sink.spans);
  return {
    row: {
      name: 'run-bridge',
      kills: kills.length,
      acknowledged: spans.size,
      inLog: log.spans.found,
      twiceInLog: log.spans.excess,
      inParquet: parquet.spans.found,
      atSink: sinkSpans.found,
      missing: Math.max(log.spans.missing, parquet.spans.missing, sinkSpans.missing),
      twiceAtSink: sinkSpans.excess,
      recoveriesMs: victim.recoveriesMs,
    },
    counts,
    runCount: runs.length,
    resentCount: load.resentCount,
    drainMs,
    exitCode,
    refusals: load.refusals,
    log,
    parquet,
    sinkSpans,
    sinkLogs: tally(expected.logs, sink.logs),
    repeatedInLife: sink.repeatedInLife,
    furthestRepeat: sink.furthestRepeat,
    problems: await auditState(dataFolder, runs),
  };
}

function recentTraceIds(last: number): readonly string[] {
  const first = Math.max(1, last - RECENT_RUNS);
  return Array.from({ length: last - first + 1 }, (_, index) => traceIdOf(first + index).toString('hex'));
}

/** Waits until everything is sent and no run waits for anything. What never comes is for the audit to tell. */
async function drain(webPort: number, isJudged: () => boolean): Promise<number> {
  const begunMs = performance.now();
  const isAtRest = async () => (await pendingRuns(webPort)) === 0 && isJudged();
  // Twice: an export hears of a run's end a moment after `run.json` says it.
  const isDrained = async () => (await isAtRest()) && (await pause(REST_MS, true)) && (await isAtRest());
  await until('the end of every run and export', isDrained).catch((error: unknown) => console.log(String(error)));
  return performance.now() - begunMs;
}
