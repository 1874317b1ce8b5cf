import { parseArgs } from 'node:util';
import { compareWorkloads, workloadGoals } from './compare-workloads.js';
import { openPeers } from './peer-programs.js';
import { type Goal, readResults } from './results.js';
import { WORKLOADS } from './workloads.js';

/** A figure may be this much worse than when it was last saved: short runs on a busy machine differ by a third. */
const MARGIN = 1.5;

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: 'big-build' },
    rounds: { type: 'string', default: '2' },
    spans: { type: 'string', default: '150000' },
    dist: { type: 'string', default: 'dist' },
  },
});

openPeers();
const saved = new Map(readResults().collector?.goals.map((goal) => [goal.what, goal]));
const workloads = WORKLOADS.filter(({ name }) => values.lines.split(',').includes(name));
const options = { rounds: Number(values.rounds), spanCount: Number(values.spans), dist: values.dist };
const found = workloadGoals(await compareWorkloads(workloads, options));
console.log('\n| figure | saved | now | |\n|---|---|---|---|');
for (const goal of found) {
  const before = saved.get(goal.what);
  const verdict = verdictOf(goal, before);
  console.log(`| ${goal.what} | ${before?.value.toFixed(2) ?? ''} | ${goal.value.toFixed(2)} | ${verdict} |`);
  if (verdict !== 'ok' && before !== undefined) process.exitCode = 1;
}

function verdictOf(goal: Goal, before: Goal | undefined): string {
  if (goal.failure !== undefined) return goal.failure;
  if (before === undefined) return 'was not saved';
  const worse = goal.atLeast === undefined ? goal.value / before.value : before.value / goal.value;
  return worse <= MARGIN ? 'ok' : `${worse.toFixed(2)} times worse`;
}
