import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bridgeVictim } from './bridge-victim.js';
import type { CleanUp } from './clean-up.js';
import { CountingSink } from './counting-sink.js';
import { freePorts } from './free-ports.js';
import { Load } from './load.js';
import { pendingRuns } from './pending-runs.js';
import { type ProcessSample, sampleProcess } from './process-sample.js';
import { type PlannedRun, RunPlan } from './run-plan.js';
import type { LoadBody } from './run-template.js';
import { SeededRandom } from './seeded-random.js';
import { Victim } from './victim.js';

/** How a soak is run. */
export interface SoakOptions {
  /** How long it is measured, after the warm-up, in seconds. */
  readonly seconds: number;
  /** Spans a second over all runs, roughly; 2,000 is a large run's own pace. */
  readonly spansPerSecond: number;
  readonly seed: number;
  readonly cleanUp: CleanUp;
  /** Told of each sample as it is taken. */
  onSample?(sample: SoakSample): void;
}

/** What the program held at a moment. */
export interface SoakSample extends ProcessSample {
  readonly second: number;
  /** What lives in the heap and outside it, after a collection. */
  readonly heapMiB: number;
  readonly loopDelayP99Ms: number;
  /** Runs that are open or not exported to their end. */
  readonly pendingRuns: number;
}

/** What a soak found. */
export interface SoakFigures {
  readonly samples: readonly SoakSample[];
  readonly acknowledgedSpans: number;
  readonly missingSpans: number;
  readonly twiceSpans: number;
  readonly runs: number;
  readonly refusals: readonly string[];
  readonly exitCode: number | null;
}

const SAMPLE_EVERY_MS = 1_000;
const ENGINES = 4;
/** So many small runs fill what is kept of runs that are over: open files, runs in memory. */
const WARM_UP_RUNS = 300;
const OUTAGES = ['503', 'reset', '429'] as const;
const OUTAGE_EVERY_MS = 15_000;
const OUTAGE_MS = 2_500;
const DRAIN_SECONDS = 90;

/** Lets the program work at a run's own pace, with a destination that fails now and then, and watches what it holds. */
export async function soak({ seconds, spansPerSecond, seed, cleanUp, onSample }: SoakOptions): Promise<SoakFigures> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-soak-'));
  cleanUp.folder(dataFolder);
  const random = new SeededRandom(seed);
  const sink = await CountingSink.listen({ delayMs: 5, failureRate: 0.01, random: new SeededRandom(seed + 1) });
  cleanUp.add(() => sink.close());
  const [httpPort = 0, webPort = 0] = await freePorts(2, 16_000);
  const nodeArgs = ['--expose-gc', '--import', './test/crash/probe.mjs'];
  const victim = new Victim(bridgeVictim({ dataFolder, httpPort, webPort, sinkPort: sink.port, nodeArgs }));
  cleanUp.add(() => victim.end('SIGKILL'));
  victim.spawn();
  let probe = { heapBytes: 0, loopDelayP99Ms: 0 };
  victim.onMessage((message) => {
    probe = message as typeof probe;
  });
  await victim.ready();

  let acknowledgedSpans = 0;
  const wanted = new Set<number>();
  const common = {
    port: httpPort,
    onAcknowledged: (_run: PlannedRun, { spanKeys }: LoadBody) => {
      acknowledgedSpans += spanKeys.length;
      for (const key of spanKeys) wanted.add(key);
    },
  };
  const small = new RunPlan(random, ['parse']);
  const warmUp = new Load(small, { ...common, engines: 2 * ENGINES, gapMs: () => 0 });
  warmUp.start();
  while (small.begunCount < WARM_UP_RUNS) await pause(20);
  await warmUp.finish();

  const plan = new RunPlan(random, undefined, small.begunCount + 1);
  const gapMs = ({ spanKeys }: LoadBody) => (spanKeys.length * 1_000 * ENGINES) / spansPerSecond;
  const load = new Load(plan, { ...common, engines: ENGINES, gapMs });
  load.start();
  const samples: SoakSample[] = [];
  const begunMs = performance.now();
  for (let elapsedMs = 0; elapsedMs < seconds * 1_000; elapsedMs = performance.now() - begunMs) {
    await pause(SAMPLE_EVERY_MS);
    const isOutage = elapsedMs % OUTAGE_EVERY_MS > OUTAGE_EVERY_MS - OUTAGE_MS;
    sink.outage = isOutage ? (OUTAGES[Math.floor(elapsedMs / OUTAGE_EVERY_MS) % OUTAGES.length] ?? 'none') : 'none';
    const sample = {
      second: Math.round(elapsedMs / 1_000),
      ...sampleProcess(victim.pid),
      heapMiB: probe.heapBytes / 1024 ** 2,
      loopDelayP99Ms: probe.loopDelayP99Ms,
      pendingRuns: await pendingRuns(webPort),
    };
    samples.push(sample);
    onSample?.(sample);
  }
  sink.outage = 'none';
  await load.finish();
  for (let second = 0; second < DRAIN_SECONDS && (await pendingRuns(webPort)) > 0; second += 1) await pause(1_000);
  const exitCode = await victim.end('SIGTERM');
  let twiceSpans = 0;
  let missingSpans = 0;
  for (const key of wanted) {
    const count = sink.spans.get(key) ?? 0;
    if (count === 0) missingSpans += 1;
    else twiceSpans += count - 1;
  }
  return {
    samples,
    acknowledgedSpans,
    missingSpans,
    twiceSpans,
    runs: plan.begunCount,
    refusals: [...warmUp.refusals, ...load.refusals],
    exitCode,
  };
}
