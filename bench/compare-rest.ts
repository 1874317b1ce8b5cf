import { runLoad } from './load-run.js';
import { PORTS } from './ports.js';
import { type Rest, runRest } from './rest-run.js';
import type { Goal } from './results.js';
import { bridgeServer, collectorServer, type Server } from './server.js';
import { formatSpread, spreadOf } from './spread.js';
import { requestFolders, WORKLOADS } from './workloads.js';

/** The engine's own pace, in spans a second. */
const PACE = 2_000;
/** Five copies. */
const WARM_UP_SPANS = 35_000;
const START_ROUNDS = 5;

/** Figures without much load, as Markdown and as goals. */
export interface RestReport {
  readonly text: string;
  readonly goals: readonly Goal[];
}

/** Both at the engine's pace with copies of a real run, run-bridge with Parquet. @param seconds how long */
export async function comparePace(dist: string, seconds: number): Promise<RestReport> {
  const [workload] = WORKLOADS;
  const load = {
    spanCount: PACE * seconds,
    warmUpSpanCount: WARM_UP_SPANS,
    spansPerSecond: PACE,
    requestFolders: workload === undefined ? [] : requestFolders(workload),
  };
  const ours = await runLoad(bridgeServer(dist, 'on'), load);
  const theirs = await runLoad(collectorServer(false), load);
  const rows = [ours, theirs].map(({ p99, coreShare }, which) => {
    return `| ${which === 0 ? 'run-bridge' : 'Collector'} | ${p99.toFixed(2)} | ${(coreShare * 100).toFixed(1)} |`;
  });
  const [failure] = ours.failures;
  const failed = failure === undefined ? {} : { failure };
  return {
    text: [
      `At ${PACE} spans/s for ${seconds} s, after ${WARM_UP_SPANS} spans of warm-up, copies of ${workload?.name}, run-bridge with Parquet:`,
      '',
      '| | p99 of answers, ms | % of a core |',
      '|---|---|---|',
      ...rows,
    ].join('\n'),
    goals: [
      { what: 'pace: p99 of answers in ms', value: ours.p99, floor: 15, atMost: 5, ...failed },
      { what: 'pace: % of a core', value: ours.coreShare * 100, floor: 6, atMost: 4, ...failed },
    ],
  };
}

/** Starts both a few times, and lets both rest. @param seconds how long they are watched */
export async function compareRest(dist: string, seconds: number): Promise<RestReport> {
  const bridge = bridgeServer(dist, 'on', []);
  const collector = collectorServer(false);
  const starts: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let round = 0; round < START_ROUNDS; round++) {
    starts.ours.push((await rest(bridge, 0)).readyMs);
    starts.theirs.push((await rest(collector, 0)).readyMs);
  }
  const ours = await rest(bridge, seconds * 1000);
  const theirs = await rest(collector, seconds * 1000);
  const row = (name: string, { memory, cpuMsPerSecond }: Rest, ready: readonly number[]) =>
    `| ${name} | ${formatSpread(spreadOf(ready), 0)} | ${memory.toFixed(0)} | ${cpuMsPerSecond.toFixed(2)} |`;
  return {
    text: [
      `At rest for ${seconds} s; started ${START_ROUNDS} times in turns:`,
      '',
      '| | start to ready, ms | memory, MiB | CPU, ms a second |',
      '|---|---|---|---|',
      row('run-bridge', ours, starts.ours),
      row('Collector', theirs, starts.theirs),
    ].join('\n'),
    goals: [
      { what: 'start to ready in ms', value: spreadOf(starts.ours).median, atMost: 400 },
      { what: 'idle: memory in MiB', value: ours.memory, atMost: 80 },
      { what: 'idle: CPU in ms a second', value: ours.cpuMsPerSecond, atMost: 1 },
    ],
  };
}

function rest(server: Server, restMs: number): Promise<Rest> {
  const path = server.dataFolder === undefined ? '/' : '/readyz';
  return runRest(server, `http://127.0.0.1:${PORTS.http}${path}`, restMs);
}
