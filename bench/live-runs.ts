import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BridgeProcess } from '../test/tool/bridge-process.js';
import { until } from '../test/tool/until.js';
import { send } from './kafka-system.js';
import { cpuTimeMs, residentPeakMiB } from './measured-process.js';
import { openPeers } from './peer-programs.js';
import { markdownTable } from './results.js';
import { recordCounts, requestFolders, WORKLOADS } from './workloads.js';

/* What a server takes for the same load as few quick runs, and as many slow ones. README.md says what is counted. */

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '8,64' },
    pace: { type: 'string', default: '3000' },
    dist: { type: 'string', default: 'dist' },
    'max-memory': { type: 'string', default: '2GiB' },
  },
});
const PATIENCE_MS = 600_000;

openPeers(false);
const [workload] = WORKLOADS;
if (workload === undefined) throw new Error('there is no workload');
const folders = requestFolders(workload);
const counts = await recordCounts(workload);
const rows: string[][] = [];
for (const dist of values.dist.split(',')) {
  for (const runs of values.runs.split(',').map(Number)) rows.push([dist, ...(await measure(dist, runs))]);
}
console.log(
  markdownTable(
    `Copies of ${workload.name} (${counts.spans.toLocaleString('en')} spans), ${Number(values.pace).toLocaleString('en')} spans/s of all of them together, \`--max-memory ${values['max-memory']}\`:`,
    [
      'program',
      'runs at a time',
      'CPU seconds for a million spans',
      'peak MiB',
      'spans/s',
      'p99 of answers, ms',
      'given up',
    ],
    rows,
  ),
);

/** One copy in each of so many runs, until every run is over. */
async function measure(dist: string, runs: number): Promise<readonly string[]> {
  const program = join(dist, 'main.js');
  const bridge = await BridgeProcess.start({ program, args: ['--max-memory', values['max-memory']] });
  try {
    const pid = bridge.child.pid ?? 0;
    const before = cpuTimeMs(pid);
    const startMs = performance.now();
    const one = { spanCount: counts.spans, connections: 1, spansPerSecond: Number(values.pace) / runs };
    const sent = await Promise.all(Array.from({ length: runs }, () => send(bridge.otlpUrl, folders, one)));
    const secs = (performance.now() - startMs) / 1_000;
    const spans = sent.reduce((sum, { spans: count }) => sum + count, 0);
    const ended = () => bridge.stderr.match(/"finished a run"/g)?.length ?? 0;
    await until(
      'the end of every run',
      () => ended() >= runs || sent.some(({ failures }) => failures.length > 0),
      PATIENCE_MS,
    );
    const cpuS = (cpuTimeMs(pid) - before) / 1_000;
    const failures = sent.flatMap(({ failures: some }) => some);
    const p99Ms = Math.max(...sent.map(({ p99Ms: ms }) => ms));
    return [
      String(runs),
      ((cpuS / spans) * 1e6).toFixed(0),
      residentPeakMiB(pid).toFixed(0),
      (spans / secs).toFixed(0),
      p99Ms.toFixed(0),
      failures.join('; ') || 'nothing',
    ];
  } finally {
    await bridge.remove();
  }
}
