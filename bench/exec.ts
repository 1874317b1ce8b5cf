import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ENGINE_QUEUES } from '../src/config/otlp-environment.js';
import { Engine } from '../test/tool/engine.js';
import { generateProject } from '../test/tool/many-models.js';
import { answeringReceiver } from './answering-receiver.js';
import { formatSpread, spreadOf } from './spread.js';

// What `exec` costs the engine: the same build alone, with its telemetry on and nobody reading it, under `exec`, and under `exec` that keeps
// the build's artifacts as well; one after the other, and who begins changes with each round.
const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '10' },
    models: { type: 'string', default: '1000' },
    rows: { type: 'string', default: '0' },
    'wait-ms': { type: 'string', default: '0' },
    dist: { type: 'string', default: 'dist' },
  },
});
const engine = Engine.up('core');
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-exec-bench-'));
const main = resolve(values.dist, 'main.js');
const receiver = await answeringReceiver();

/** One build: the engine's own wall-clock and that of all of it, the CPU that the engine took, and what all else took, in milliseconds. */
interface Build {
  readonly engineMs: number;
  readonly wallMs: number;
  readonly engineCpuMs: number;
  readonly ownCpuMs: number;
}

/** A way to run the engine: what comes before its command, and what is set for it. */
interface Way {
  readonly wrap: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const WAYS = ['alone', 'telemetry', 'wrapped', 'kept'] as const;
const LABELS = {
  telemetry: 'with its telemetry on, which nobody reads',
  wrapped: 'under exec',
  kept: 'under exec, artifacts kept',
} as const;
const work = { rowCount: Number(values.rows), waitMs: Number(values['wait-ms']) };
const project = generateProject(Number(values.models), work);
/** Where builds go when they are measured. To remove their thousands of files before the next one would cost that one: ext4 passes over inodes that were just freed. */
const done = mkdtempSync(join(tmpdir(), 'run-bridge-exec-done-'));
let movedCount = 0;
/** The engine by its name, which says how much CPU it took. */
const dbt = join(folder, 'bin', 'dbt');
mkdirSync(join(folder, 'bin'));
writeFileSync(
  dbt,
  `#!/bin/sh
cd "$PROJECT"; a=$(date +%s%N); '${engine.dbt}' "$@" >/dev/null 2>&1; code=$?; b=$(date +%s%N); echo $((b - a)) > "$TIMES"; times > "$ENGINE_CPU"; exit $code
`,
  { mode: 0o755 },
);

try {
  await build(wayOf('alone', 0));
  const rounds: Record<(typeof WAYS)[number], Build>[] = [];
  for (let round = 0; round < Number(values.pairs); round++) {
    const taken = new Map<string, Build>();
    const first = round % WAYS.length;
    for (const way of [...WAYS.slice(first), ...WAYS.slice(0, first)]) taken.set(way, await build(wayOf(way, round)));
    rounds.push(Object.fromEntries(taken) as Record<(typeof WAYS)[number], Build>);
  }
  const of = (pick: (round: (typeof rounds)[number]) => number, digits = 0) =>
    formatSpread(spreadOf(rounds.map(pick)), digits);
  const more = (way: (typeof WAYS)[number]) => of((round) => 100 * (round[way].engineMs / round.alone.engineMs - 1), 1);
  console.log(
    `${values.models} models of ${work.rowCount} rows that wait for ${work.waitMs} ms, ${values.pairs} rounds; the engine's own wall-clock`,
  );
  console.log(`alone: ${of(({ alone }) => alone.engineMs)} ms`);
  for (const way of ['telemetry', 'wrapped', 'kept'] as const) console.log(`${LABELS[way]}: ${more(way)} % more`);
  const seconds = (pick: (round: (typeof rounds)[number]) => number) => of((round) => pick(round) / 1000, 2);
  console.log(`CPU of the engine: alone ${seconds(({ alone }) => alone.engineCpuMs)} s`);
  for (const way of ['telemetry', 'wrapped', 'kept'] as const) {
    const engineMore = seconds((round) => round[way].engineCpuMs - round.alone.engineCpuMs);
    console.log(`  ${LABELS[way]}: ${engineMore} s more; of exec itself ${seconds((round) => round[way].ownCpuMs)} s`);
  }
  const beside = seconds(({ wrapped, telemetry }) => cpuOf(wrapped) - cpuOf(telemetry));
  console.log(`CPU of both under exec, more than of the engine with its telemetry on: ${beside} s`);
  console.log(
    `start and end of exec together: ${of(({ wrapped }) => wrapped.wallMs - wrapped.engineMs)} ms, artifacts kept ${of(({ kept }) => kept.wallMs - kept.engineMs)} ms`,
  );
} finally {
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
  for (const made of [project, done]) rmSync(made, { recursive: true, force: true });
  engine.remove();
}

function wayOf(way: (typeof WAYS)[number], round: number): Way {
  if (way === 'alone') return { wrap: [], env: {} };
  if (way === 'wrapped' || way === 'kept') {
    const wrap = [process.execPath, main, 'exec', '--quiet', '--data-dir', join(folder, `data-${way}-${round}`), '--'];
    // It looks for artifacts in the project that it knows of.
    return { wrap, env: way === 'kept' ? { DBT_PROJECT_DIR: project } : {} };
  }
  const env = {
    DBT_EXPORT_TO_OTLP: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    DBT_OTEL_FILE_NAME: join(folder, `otel-${round}.jsonl`),
    ...ENGINE_QUEUES,
  };
  return { wrap: [], env };
}

async function build({ wrap, env }: Way): Promise<Build> {
  for (const made of ['logs', 'target', 'many.duckdb']) {
    const path = join(project, made);
    if (existsSync(path)) renameSync(path, join(done, `${made}-${movedCount++}`));
  }
  const [times, engineCpu, cpu] = ['times', 'engine-cpu', 'cpu'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const startMs = performance.now();
  const measured = [
    'bash',
    '-c',
    '"$@"; code=$?; times > "$CPU"; exit $code',
    'bash',
    ...wrap,
    dbt,
    'build',
    '--threads',
    '4',
  ];
  const { exitCode, output } = await engine.runCommand(measured, {
    PROJECT: project,
    DBT_PROFILES_DIR: project,
    TIMES: times,
    ENGINE_CPU: engineCpu,
    CPU: cpu,
    ...env,
  });
  const wallMs = performance.now() - startMs;
  if (exitCode !== 0) throw new Error(`the build ended with ${exitCode}: ${output}`);
  const engineCpuMs = spentOf(readFileSync(engineCpu, 'utf8'));
  const ownCpuMs = spentOf(readFileSync(cpu, 'utf8')) - engineCpuMs;
  return { engineMs: Number(readFileSync(times, 'utf8')) / 1e6, wallMs, engineCpuMs, ownCpuMs };
}

function cpuOf({ engineCpuMs, ownCpuMs }: Build): number {
  return engineCpuMs + ownCpuMs;
}

/** What `times` of a shell says, its own and its children's, such as `0m1.500s 0m0.250s`, in milliseconds. */
function spentOf(times: string): number {
  const spent = Array.from(
    times.matchAll(/(\d+)m([\d.]+)s/g),
    ([, minutes, seconds]) => 60 * Number(minutes) + Number(seconds),
  );
  return 1000 * spent.reduce((sum, one) => sum + one, 0);
}
