import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { DEFAULT_EXPORT_WORKER_OPTIONS } from '../../src/exporter/export-worker-options.js';
import { until } from '../tool/until.js';
import { bridgeVictim, isWritingParquet } from './bridge-victim.js';
import { CountingSink } from './counting-sink.js';
import { crashTable } from './crash-table.js';
import { crashRepeatedly } from './crash-trial.js';
import { expectedRuns } from './expected-run.js';
import { freePorts } from './free-ports.js';
import { Load } from './load.js';
import { traceIdOf } from './load-ids.js';
import { auditParquet } from './parquet-audit.js';
import { auditRecordLogs } from './record-log-audit.js';
import { RunPlan } from './run-plan.js';
import { SeededRandom } from './seeded-random.js';
import { auditState } from './state-audit.js';
import { tally } from './tally.js';
import { Victim } from './victim.js';

const KILLS = Number(process.env.CRASH_KILLS ?? 60);
const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 2 ** 31);
/** Runs whose Parquet may be in the making when a look is taken. */
const RECENT_RUNS = 24;
const DRAIN_MS = 120_000;

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

test(`after ${KILLS} kills every span that was acknowledged is once in the log, once in Parquet, and at the destination`, {
  timeout: 120_000 + KILLS * 6_000,
}, async () => {
  console.log(`crash trial: CRASH_SEED=${SEED} CRASH_KILLS=${KILLS}`);
  const random = new SeededRandom(SEED);
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-crash-'));
  ended.push(() => rmSync(dataFolder, { recursive: true, force: true }));
  const sink = await CountingSink.listen({ delayMs: 10, failureRate: 0.03, random: new SeededRandom(SEED + 1) });
  ended.push(() => sink.close());
  const [httpPort = 0, webPort = 0] = await freePorts(2, 21_000);
  const times = ['--invocation-quiet', '300ms', '--event-hold', '200ms'];
  const victim = new Victim(bridgeVictim({ dataFolder, httpPort, webPort, sinkPort: sink.port, args: times }));
  ended.push(() => victim.end('SIGKILL'));
  const plan = new RunPlan(random);
  const load = new Load(plan, { port: httpPort, engines: 12, maxPauseMs: 6, random: new SeededRandom(SEED + 2) });
  const recent = () => {
    const last = Math.max(plan.begunCount, RECENT_RUNS);
    return Array.from({ length: RECENT_RUNS }, (_, back) => traceIdOf(last - back).toString('hex'));
  };
  const moments = ['load', 'export', 'startUp', 'parquet', 'shutdown'] as const;
  const counts = await crashRepeatedly(KILLS, {
    victim,
    load,
    sink,
    random,
    moments,
    isWritingParquet: () => isWritingParquet(dataFolder, recent()),
  });

  const runs = expectedRuns(load.acknowledged);
  const wanted = new Map(runs.flatMap((run) => [...run.spanKeys].map((key) => [key, 1] as const)));
  const drainedFromMs = performance.now();
  // A run may wait in vain: what is wrong with it is then said below.
  await until('the end of all', async () => (await isDrained(webPort)) && wanted.size === reached(), DRAIN_MS).catch(
    (error: unknown) => console.log(String(error)),
  );
  function reached(): number {
    return tally(wanted, sink.spans).found;
  }
  const drainMs = performance.now() - drainedFromMs;
  expect(await victim.end('SIGTERM')).toBe(0);

  const logs = auditRecordLogs(dataFolder, runs);
  const parquet = await auditParquet(dataFolder, runs);
  const sunk = tally(wanted, sink.spans);
  const sunkLogs = tally(new Map(runs.flatMap((run) => [...run.logs])), sink.logs);
  const row = {
    name: 'run-bridge',
    kills: KILLS,
    acknowledged: wanted.size,
    inLog: logs.spans.found,
    twiceInLog: logs.spans.excess,
    inParquet: parquet.spans.found,
    atSink: sunk.found,
    missing: Math.max(logs.spans.missing, parquet.spans.missing, sunk.missing),
    twiceAtSink: sunk.excess,
    recoveriesMs: victim.recoveriesMs,
  };
  console.log(crashTable([row]));
  console.log(
    `${runs.length} runs, ${load.resentCount} bodies sent again, drained in ${Math.round(drainMs)} ms; kills: ${JSON.stringify(counts)}`,
  );
  expect(load.refusals).toEqual([]);
  expect(logs.badLines).toEqual([]);
  expect(logs).toMatchObject({
    spans: { missing: 0, excess: 0 },
    spanStarts: { missing: 0, excess: 0 },
    logs: { missing: 0, excess: 0 },
  });
  expect(parquet).toMatchObject({ spans: { missing: 0, excess: 0 }, logs: { missing: 0, excess: 0 } });
  expect({ spans: sunk.missing, logs: sunkLogs.missing }).toEqual({ spans: 0, logs: 0 });
  expect(await auditState(dataFolder, runs)).toEqual([]);
  const { maxBatchItems, maxConcurrentRuns } = DEFAULT_EXPORT_WORKER_OPTIONS;
  expect(sunk.excess).toBeLessThanOrEqual(KILLS * maxBatchItems * maxConcurrentRuns);
});

/** Whether every export is at rest and has nothing left to send. */
async function isDrained(webPort: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${webPort}/readyz?verbose`);
  const report = (await response.json()) as { checks: { name: string; details?: { pendingRuns?: number } }[] };
  return report.checks.every(({ details }) => (details?.pendingRuns ?? 0) === 0);
}
