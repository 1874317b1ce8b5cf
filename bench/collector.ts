import { parseArgs } from 'node:util';
import { comparePace, compareRest, type RestReport } from './compare-rest.js';
import { compareWorkloads, workloadGoals, workloadTable } from './compare-workloads.js';
import { openPeers } from './peer-programs.js';
import { saveSection } from './results.js';
import { WORKLOADS } from './workloads.js';

const REST = ['pace', 'rest'];

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: [...WORKLOADS.map(({ name }) => name), ...REST].join(',') },
    rounds: { type: 'string', default: '3' },
    spans: { type: 'string', default: '250000' },
    seconds: { type: 'string', default: '30' },
    dist: { type: 'string', default: 'dist' },
    save: { type: 'boolean', default: false },
  },
});
const names = values.lines.split(',');
const unknown = names.find((name) => !REST.includes(name) && !WORKLOADS.some((workload) => workload.name === name));
if (unknown !== undefined) throw new Error(`there is no line ${unknown}`);

openPeers();
const options = { rounds: Number(values.rounds), spanCount: Number(values.spans), dist: values.dist };
const compared = await compareWorkloads(
  WORKLOADS.filter(({ name }) => names.includes(name)),
  options,
);
const reports: RestReport[] = [];
if (names.includes('pace')) reports.push(await comparePace(values.dist, Number(values.seconds)));
if (names.includes('rest')) reports.push(await compareRest(values.dist, Number(values.seconds)));
if (compared.length > 0) {
  const heading = `${options.spanCount.toLocaleString('en')} spans a round, 4 connections, as fast as each answers:`;
  // Of lines that were measured apart, each time's are a section of their own.
  const measured =
    compared.length === WORKLOADS.length ? '' : `: ${names.filter((name) => !REST.includes(name)).join(', ')}`;
  report(`collector${measured}`, { text: `${heading}\n\n${workloadTable(compared)}`, goals: workloadGoals(compared) });
}
if (reports.length > 0) {
  const text = reports.map((each) => each.text).join('\n\n');
  report('little or no load', { text, goals: reports.flatMap(({ goals }) => goals) });
}

function report(section: string, { text, goals }: RestReport): void {
  saveSection(section, { text, goals, rounds: options.rounds }, values.save);
  if (goals.some(({ failure }) => failure !== undefined)) process.exitCode = 1;
}
