import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import type { Limit, Line } from './lines.js';
import { type LoadRow, runLoad } from './load-run.js';
import type { Goal } from './results.js';
import { bridgeServer, collectorServer } from './server.js';
import { formatSpread, type Spread, spreadOf } from './spread.js';

/** How lines are compared. */
export interface Comparison {
  readonly rounds: number;
  readonly spanCount: number;
  /** Folder of the built program. */
  readonly dist: string;
}

/** What both found on one line, a row for each round. */
export interface ComparedLine {
  readonly line: Line;
  readonly ours: readonly LoadRow[];
  readonly theirs: readonly LoadRow[];
}

/** run-bridge and the Collector in turns on each line, on the same bodies; who begins changes with each round. */
export async function compareLines(lines: readonly Line[], options: Comparison): Promise<readonly ComparedLine[]> {
  const compared: ComparedLine[] = [];
  for (const line of lines) {
    console.log(`\n${line.name}: ${line.what}`);
    const ours: LoadRow[] = [];
    const theirs: LoadRow[] = [];
    for (let round = 0; round < options.rounds; round++) {
      if (round % 2 === 0) ours.push(await runBridge(line, options));
      theirs.push(await runLoad(collectorServer(line), { spanCount: options.spanCount, useSink: isExporting(line) }));
      if (round % 2 === 1) ours.push(await runBridge(line, options));
    }
    compared.push({ line, ours, theirs });
  }
  return compared;
}

/** The table's rows: each figure of both, and the ratios of the rounds. */
export function lineTable(compared: readonly ComparedLine[]): string {
  const rows = compared.flatMap(({ line, ours, theirs }) => [
    `| **${line.name}** | ${line.what} | | |`,
    ...FIGURES.map(([figure, what, digits]) => {
      const of = (rows: readonly LoadRow[]) => formatSpread(spreadOf(rows.map((row) => row[figure])), digits);
      return `| | ${what} | ${of(ours)} | ${of(theirs)} | ${formatSpread(ratioOf(figure, ours, theirs))} |`;
    }),
    `| | spans twice at the sink | ${sum(ours)} | ${sum(theirs)} | |`,
  ]);
  return ['| line | | run-bridge | Collector | ratio |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** The lines' limits with what was found. */
export function lineGoals(compared: readonly ComparedLine[]): readonly Goal[] {
  return compared.flatMap(({ line, ours, theirs }) =>
    line.limits.map(({ figure, ...limit }) => {
      const what = `${line.name}: ${FIGURES.find(([name]) => name === figure)?.[1]} by the Collector's`;
      const [failure] = [...ours, ...theirs].flatMap(({ failures }) => failures);
      const goal = { what, value: ratioOf(figure, ours, theirs).median, ...limit };
      return failure === undefined ? goal : { ...goal, failure };
    }),
  );
}

const FIGURES: readonly (readonly [figure: Limit['figure'], what: string, digits: number])[] = [
  ['cpu', 'CPU s a million spans', 1],
  ['spansPerSecond', 'spans/s end to end', 0],
  ['p99', 'p99 of answers, ms', 0],
  ['memory', 'peak memory, MiB', 0],
];

function ratioOf(figure: Limit['figure'], ours: readonly LoadRow[], theirs: readonly LoadRow[]): Spread {
  return spreadOf(ours.map((row, round) => row[figure] / (theirs[round]?.[figure] ?? Number.NaN)));
}

function sum(rows: readonly LoadRow[]): number {
  return rows.reduce((total, { repeatedCount }) => total + repeatedCount, 0);
}

function isExporting(line: Line): boolean {
  return line.compression !== undefined;
}

async function runBridge(line: Line, { dist, spanCount }: Comparison): Promise<LoadRow> {
  const server = bridgeServer(line, dist);
  // Parquet is written when a trace has been silent for two seconds: the last ones after everything else.
  const quietMs = line.parquet ? 8_000 : 2_500;
  const row = await runLoad(server, { spanCount, useSink: isExporting(line), quietMs });
  if (!line.parquet) return row;
  const missing = await missingFromParquet(server.folders[0] ?? '', row.acknowledgedCount);
  return missing === undefined ? row : { ...row, failures: [...row.failures, missing] };
}

/** Each acknowledged span has to be there twice, as SpanStart and as SpanEnd. */
async function missingFromParquet(data: string, spanCount: number): Promise<string | undefined> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const files = join(data, 'runs/*/*.parquet');
    const sql = `SELECT count(DISTINCT span_id)::INTEGER, count(*)::INTEGER FROM read_parquet('${files}')`;
    const [found, rows] = (await connection.runAndReadAll(sql)).getRows()[0] ?? [];
    if (Number(found) === spanCount && Number(rows) === 2 * spanCount) return undefined;
    return `${found} of ${spanCount} spans in the Parquet files, in ${rows} rows`;
  } catch (error) {
    return `no Parquet: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
