import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { bigBuild } from './big-build.js';
import { type Measured, measureNode } from './measured-process.js';
import { type Goal, saveSection } from './results.js';
import { formatSpread, type Spread, spreadOf } from './spread.js';

const SAMPLES = ['build-mixed', 'build-mixed-fusion', 'build-clean', 'interrupted', 'fail-fast', 'joined', 'parse'];
const DUCKDB_COPY = fileURLToPath(new URL('duckdb-copy.js', import.meta.url));

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    dist: { type: 'string', default: 'dist' },
    'engine-run': { type: 'string' },
    'only-ours': { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
  },
});
const main = join(values.dist, 'main.js');
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-bench-'));

try {
  await run();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function run(): Promise<void> {
  const input = bigBuild(Number(values.records));
  console.log(`${input.recordCount} records, ${mebibytes(statSync(input.path).size)} MiB`);
  const ours: Measured[] = [];
  const theirs: Measured[] = [];
  for (let round = 1; round <= Number(values.rounds); round++) {
    ours.push(await convert('run-bridge', [main, 'convert', input.path], input.recordCount));
    if (values['only-ours']) continue;
    theirs.push(await convert('DuckDB', [DUCKDB_COPY, input.path], input.recordCount));
  }
  const sizes = await sizeRatios();
  if (!values['only-ours']) report(input.recordCount, ours, theirs, sizes);
}

/** Runs one of them once, and counts the rows of what it wrote. */
async function convert(name: string, args: readonly string[], recordCount: number): Promise<Measured> {
  const output = join(folder, `${name}.parquet`);
  rmSync(output, { force: true });
  const measured = await measureNode([...args, output]);
  const rows = await rowCount(output);
  if (rows !== recordCount) throw new Error(`${name} wrote ${rows} of ${recordCount} records`);
  const { wallMs, cpuMs, peakMiB } = measured;
  const size = mebibytes(statSync(output).size);
  console.log(`${name}: ${seconds(wallMs)} s, CPU ${seconds(cpuMs)} s, ${peakMiB.toFixed(0)} MiB, writes ${size} MiB`);
  return measured;
}

/** Bytes of our Parquet by bytes of the engine's, for each run that it wrote both files of. */
async function sizeRatios(): Promise<ReadonlyMap<string, number>> {
  const runs = SAMPLES.map((name) => [name, join('test/fixture/samples', name)]);
  if (values['engine-run'] !== undefined) runs.push(['a large run', values['engine-run']]);
  const ratios = new Map<string, number>();
  for (const [name = '', run = ''] of runs) {
    const output = join(folder, 'sample.parquet');
    await measureNode([main, 'convert', join(run, 'otel.jsonl'), output]);
    const ratio = statSync(output).size / statSync(join(run, 'otel.parquet')).size;
    console.log(`Parquet of ${name}: ${ratio.toFixed(3)} of the engine's`);
    ratios.set(name, ratio);
  }
  return ratios;
}

function report(recordCount: number, ours: Measured[], theirs: Measured[], sizes: ReadonlyMap<string, number>): void {
  const of = (measured: readonly Measured[], key: 'wallMs' | 'cpuMs' | 'peakMiB', unit = 1) =>
    spreadOf(measured.map((each) => each[key] / unit));
  const ratio = (key: 'wallMs' | 'cpuMs' | 'peakMiB') =>
    spreadOf(ours.map((each, round) => each[key] / (theirs[round]?.[key] ?? Number.NaN)));
  const row = (name: string, a: Spread, b: Spread, c: Spread, digits = 2) =>
    `| ${name} | ${formatSpread(a, digits)} | ${formatSpread(b, digits)} | ${formatSpread(c)} |`;
  const goals: readonly Goal[] = [
    { what: 'convert: wall-clock by DuckDB’s', value: ratio('wallMs').median, atMost: 1.5 },
    { what: 'convert: peak memory in MiB', value: of(ours, 'peakMiB').max, atMost: 400 },
    { what: 'Parquet: largest size by the engine’s', value: Math.max(...sizes.values()), atMost: 1.1 },
  ];
  const text = [
    `\`convert\` of ${recordCount.toLocaleString('en')} records from JSONL to Parquet, ${ours.length} rounds in turns:`,
    '',
    '| | run-bridge | DuckDB | ratio |',
    '|---|---|---|---|',
    row('wall-clock s', of(ours, 'wallMs', 1e3), of(theirs, 'wallMs', 1e3), ratio('wallMs')),
    row('CPU s', of(ours, 'cpuMs', 1e3), of(theirs, 'cpuMs', 1e3), ratio('cpuMs')),
    row('peak memory MiB', of(ours, 'peakMiB'), of(theirs, 'peakMiB'), ratio('peakMiB'), 0),
    '',
    `Parquet by the engine's of the same run: ${[...sizes].map(([name, size]) => `${name} ${size.toFixed(2)}`).join(', ')}.`,
  ].join('\n');
  saveSection('convert', { text, goals, rounds: ours.length }, values.save);
}

async function rowCount(parquet: string): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const rows = await connection.runAndReadAll(`SELECT count(*)::INTEGER FROM read_parquet('${parquet}')`);
  connection.closeSync();
  instance.closeSync();
  return Number(rows.getRows()[0]?.[0]);
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}
