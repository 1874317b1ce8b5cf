import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { type LoadRow, runLoad } from './load-run.js';
import type { Goal } from './results.js';
import { bridgeServer, collectorServer, type Server } from './server.js';
import { formatSpread, spreadOf } from './spread.js';
import { lineCounts, recordCounts, requestFolders, type Workload } from './workloads.js';

/** How workloads are compared. */
export interface Comparison {
  readonly rounds: number;
  /** Sent a round, rounded up to whole copies. */
  readonly spanCount: number;
  /** Folder of the built program. */
  readonly dist: string;
}

const PROGRAMS = ['bridge', 'bridgeParquet', 'collector', 'collectorSynced'] as const;
type Program = (typeof PROGRAMS)[number];

/** What all found with one workload, a row for each round. */
export interface ComparedWorkload {
  readonly workload: Workload;
  readonly rows: Readonly<Record<Program, readonly LoadRow[]>>;
}

/** run-bridge and the Collector in turns with each workload; who begins changes with each round. */
export async function compareWorkloads(
  workloads: readonly Workload[],
  options: Comparison,
): Promise<readonly ComparedWorkload[]> {
  const compared: ComparedWorkload[] = [];
  for (const workload of workloads) {
    console.log(`\n${workload.name}: ${workload.what}`);
    const rows: Record<Program, LoadRow[]> = { bridge: [], bridgeParquet: [], collector: [], collectorSynced: [] };
    for (let round = 0; round < options.rounds; round++) {
      const programs = round % 2 === 0 ? PROGRAMS : PROGRAMS.toReversed();
      for (const program of programs) rows[program].push(await measure(program, workload, options));
    }
    compared.push({ workload, rows });
  }
  return compared;
}

const FIGURES = {
  cpu: { what: 'CPU s a million spans', digits: 1 },
  spansPerSecond: { what: 'spans/s end to end', digits: 0 },
  p99: { what: 'p99 of answers, ms', digits: 0 },
  memory: { what: 'peak memory, MiB', digits: 0 },
} as const;
type Figure = keyof typeof FIGURES;

/** A figure of run-bridge (Parquet off) as a share of the Collector's: what it may be at worst, and what is wanted. */
interface Limit {
  readonly figure: Figure;
  readonly by: 'collector' | 'collectorSynced';
  /** CPU, answers and memory are to be small, spans/s large. */
  readonly floor: number;
  readonly goal: number;
}

const LIMITS: readonly Limit[] = [
  { figure: 'cpu', by: 'collector', floor: 1, goal: 0.7 },
  { figure: 'cpu', by: 'collectorSynced', floor: 1, goal: 0.6 },
  { figure: 'spansPerSecond', by: 'collector', floor: 0.75, goal: 1.1 },
  { figure: 'p99', by: 'collector', floor: 2.2, goal: 1 },
  { figure: 'memory', by: 'collector', floor: 3.8, goal: 2.5 },
];
/** What Parquet may cost on top, in CPU seconds a million spans. */
const PARQUET_LIMIT = { floor: 8, goal: 5 };

/** The rows of a table: each figure of all four, and what run-bridge's is by those of the Collector. */
export function workloadTable(compared: readonly ComparedWorkload[]): string {
  const rows = compared.flatMap(({ workload, rows }) => [
    `| **${workload.name}** | ${workload.what} | | | | | |`,
    ...Object.entries(FIGURES).map(([name, { what, digits }]) => {
      const figure = name as Figure;
      const all = PROGRAMS.map((program) =>
        formatSpread(spreadOf(rows[program].map((row) => row[figure])), digits),
      ).join(' | ');
      const ratios = (['collector', 'collectorSynced'] as const).map((by) => ratio(rows, figure, by).toFixed(2));
      return `| | ${what} | ${all} | ${ratios.join(' / ')} |`;
    }),
    `| | spans twice at the sink | ${PROGRAMS.map((program) => repeats(rows[program])).join(' | ')} | |`,
  ]);
  return [
    '| workload | | run-bridge | with Parquet | Collector | its queue synced | run-bridge by both |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

/** The limits with what was found; made-up spans have none. */
export function workloadGoals(compared: readonly ComparedWorkload[]): readonly Goal[] {
  return compared
    .filter(({ workload }) => workload.samples.length > 0)
    .flatMap(({ workload, rows }) => {
      const [failure] = PROGRAMS.flatMap((program) => rows[program].flatMap(({ failures }) => failures));
      const withFailure = failure === undefined ? {} : { failure };
      const ratios = LIMITS.map(({ figure, by, floor, goal }) => ({
        what: `${workload.name}: ${FIGURES[figure].what} by the Collector's${by === 'collector' ? '' : ', synced'}`,
        value: ratio(rows, figure, by),
        floor,
        ...(figure === 'spansPerSecond' ? { atLeast: goal } : { atMost: goal }),
        ...withFailure,
      }));
      const value = spreadOf(rows.bridgeParquet.map(({ cpu }, round) => cpu - (rows.bridge[round]?.cpu ?? 0))).median;
      const what = `${workload.name}: CPU s a million spans that Parquet adds`;
      const parquet = { what, value, floor: PARQUET_LIMIT.floor, atMost: PARQUET_LIMIT.goal, ...withFailure };
      return [...ratios, parquet];
    });
}

function ratio(rows: ComparedWorkload['rows'], figure: Figure, by: 'collector' | 'collectorSynced'): number {
  return spreadOf(rows.bridge.map((row, round) => row[figure] / (rows[by][round]?.[figure] ?? Number.NaN))).median;
}

function repeats(rows: readonly LoadRow[]): number {
  return rows.reduce((total, { repeatedCount }) => total + repeatedCount, 0);
}

async function measure(program: Program, workload: Workload, { dist, spanCount }: Comparison): Promise<LoadRow> {
  const server = serverOf(program, dist);
  // Parquet is written when a run has ended, by silence with made-up spans: the last ones after everything else.
  const quietMs = program === 'bridgeParquet' ? 8_000 : 2_500;
  const row = await runLoad(server, { spanCount, requestFolders: requestFolders(workload), quietMs });
  const faults = server.dataFolder === undefined ? [] : await faultsOf(server.dataFolder, program, workload, row);
  return { ...row, failures: [...row.failures, ...faults] };
}

function serverOf(program: Program, dist: string): Server {
  switch (program) {
    case 'bridge':
      return bridgeServer(dist, 'off');
    case 'bridgeParquet':
      return bridgeServer(dist, 'on');
    case 'collector':
      return collectorServer(false);
    case 'collectorSynced':
      return collectorServer(true);
  }
}

/** Each record has to be there once, in the record logs and, where it is written, in Parquet; and each real run has its verdict. */
async function faultsOf(
  dataFolder: string,
  program: Program,
  workload: Workload,
  { acknowledgedCount }: LoadRow,
): Promise<readonly string[]> {
  const faults: string[] = [];
  const isReal = workload.samples.length > 0;
  const copy = isReal ? await recordCounts(workload) : { spans: 1, logRecords: 0 };
  const expected = (acknowledgedCount / copy.spans) * (2 * copy.spans + copy.logRecords);
  const counts = await lineCounts(dataFolder);
  const found = counts.reduce((total, count) => total + count, 0);
  if (found !== expected) faults.push(`${found} of ${expected} records in the record logs`);
  const summaries = readdirSync(join(dataFolder, 'runs'), { recursive: true, encoding: 'utf8' });
  const ended = summaries.filter((file) => file.endsWith('run.json')).length;
  if (isReal && ended !== counts.length) faults.push(`${ended} of ${counts.length} runs have a verdict`);
  if (program === 'bridgeParquet') {
    const rows = await parquetRows(dataFolder);
    if (rows !== expected) faults.push(`${rows} of ${expected} records in the Parquet files`);
  }
  return faults;
}

async function parquetRows(dataFolder: string): Promise<number | string> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const sql = `SELECT count(*)::INTEGER FROM read_parquet('${join(dataFolder, 'runs/*/*.parquet')}')`;
    return Number((await connection.runAndReadAll(sql)).getRows()[0]?.[0]);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
