import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Machine, thisMachine } from './machine.js';

const JSON_FILE = 'bench/results.json';
const TEXT_FILE = 'bench/RESULTS.md';

/** One figure against what is wanted of it. */
export interface Goal {
  readonly what: string;
  readonly value: number;
  readonly atMost?: number;
  readonly atLeast?: number;
  /** What it has to reach before the goal is worked on. */
  readonly floor?: number;
  /** Why the figure does not count. */
  readonly failure?: string;
}

/** What one script found. */
export interface Section {
  /** Markdown. */
  readonly text: string;
  readonly goals: readonly Goal[];
  readonly rounds: number;
}

interface SavedSection extends Section {
  /** ISO 8601 day. */
  readonly date: string;
  readonly machine: Machine;
}

/** Everything that was last saved, by the name of its script. */
export type Results = Readonly<Record<string, SavedSection>>;

/** `results.json`, empty before the first. */
export function readResults(): Results {
  return existsSync(JSON_FILE) ? (JSON.parse(readFileSync(JSON_FILE, 'utf8')) as Results) : {};
}

/** Whether a figure is where it should be. */
export function isMet({ value, atMost, atLeast, failure }: Goal): boolean {
  if (failure !== undefined || Number.isNaN(value)) return false;
  return (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
}

/** `yes`, what it reaches short of that, or why it does not count. */
function verdictOf(goal: Goal): string {
  const { floor, failure } = goal;
  if (failure !== undefined) return `**no**: ${failure}`;
  if (isMet(goal)) return 'yes';
  if (floor === undefined) return '**no**';
  const { what, value } = goal;
  const reachesFloor = isMet({ what, value, ...(goal.atMost === undefined ? { atLeast: floor } : { atMost: floor }) });
  return reachesFloor ? `floor (${floor})` : `**no**, floor ${floor}`;
}

/** Prints what a script found; with `save`, also writes it into `results.json` and `RESULTS.md` beside what others found. */
export function saveSection(name: string, section: Section, save: boolean): void {
  console.log(`\n${sectionText(section)}`);
  if (!save) return;
  const saved: SavedSection = { date: new Date().toISOString().slice(0, 10), machine: thisMachine(), ...section };
  const results: Results = { ...readResults(), [name]: saved };
  writeFileSync(JSON_FILE, `${JSON.stringify(results, null, 2)}\n`);
  const parts = Object.entries(results).map(([key, each]) => `## ${key}\n${machineText(each)}\n\n${sectionText(each)}`);
  const heading =
    '# Results\nWritten by the scripts in this folder, as README.md says. Medians, and (smallest–largest).';
  writeFileSync(TEXT_FILE, `${[heading, ...parts].join('\n\n')}\n`);
}

/** A table in Markdown, below a line of its own. */
export function markdownTable(
  heading: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [heading, '', line(columns), `|${'---|'.repeat(columns.length)}`, ...rows.map(line)].join('\n');
}

function sectionText({ text, goals }: Section): string {
  const rows = goals.map((goal) => {
    const limit = goal.atMost === undefined ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`;
    return `| ${goal.what} | ${limit} | ${goal.value.toFixed(2)} | ${verdictOf(goal)} |`;
  });
  return [text, '', '| goal | limit | found | met |', '|---|---|---|---|', ...rows].join('\n');
}

function machineText({ date, machine, rounds }: SavedSection): string {
  const { cpu, cores, memoryGiB, system, node } = machine;
  return `${date}, ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, ${rounds} rounds.`;
}
