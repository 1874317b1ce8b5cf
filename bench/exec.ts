import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ENGINE_QUEUES } from '../src/cli/engine-queues.js';
import { Engine } from '../test/tool/engine.js';
import { generateProject } from '../test/tool/many-models.js';
import { answeringReceiver } from './answering-receiver.js';
import { formatSpread, spreadOf } from './spread.js';

// What `exec` costs the engine: the same build alone, with its telemetry on and nobody reading it, and under `exec`; one
// after the other, and who begins changes with each round.
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

/** One build: the engine's own wall-clock, that of all of it, and the CPU that all of it took, in milliseconds. */
interface Build {
  readonly engineMs: number;
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** A way to run the engine: what comes before its command, and what is set for it. */
interface Way {
  readonly wrap: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const WAYS = ['alone', 'telemetry', 'wrapped'] as const;
const work = { rowCount: Number(values.rows), waitMs: Number(values['wait-ms']) };
const project = generateProject(Number(values.models), work);

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
  console.log(`with its telemetry on, which nobody reads: ${more('telemetry')} % more`);
  console.log(`under exec: ${more('wrapped')} % more`);
  const moreCpu = of(({ wrapped, telemetry }) => (wrapped.cpuMs - telemetry.cpuMs) / 1000, 2);
  console.log(
    `CPU: alone ${of(({ alone }) => alone.cpuMs / 1000, 1)} s, under exec ${moreCpu} s more than with its telemetry on`,
  );
  console.log(`start and end of exec together: ${of(({ wrapped }) => wrapped.wallMs - wrapped.engineMs)} ms`);
} finally {
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
  rmSync(project, { recursive: true, force: true });
  engine.remove();
}

function wayOf(way: (typeof WAYS)[number], round: number): Way {
  if (way === 'alone') return { wrap: [], env: {} };
  if (way === 'wrapped') {
    return { wrap: [process.execPath, main, 'exec', '--data-dir', join(folder, `data-${round}`), '--'], env: {} };
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
  for (const made of ['logs', 'target', 'many.duckdb']) rmSync(join(project, made), { recursive: true, force: true });
  const times = join(folder, 'times');
  const script = `cd "$PROJECT"; a=$(date +%s%N); dbt build --threads 4 >/dev/null 2>&1; code=$?; b=$(date +%s%N); echo $((b - a)) > "$TIMES"; exit $code`;
  const startMs = performance.now();
  const cpu = join(folder, 'cpu');
  const measured = ['bash', '-c', '"$@"; code=$?; times > "$CPU"; exit $code', 'bash', ...wrap, 'sh', '-c', script];
  const { exitCode, output } = await engine.runCommand(measured, {
    PROJECT: project,
    DBT_PROFILES_DIR: project,
    TIMES: times,
    CPU: cpu,
    ...env,
  });
  const wallMs = performance.now() - startMs;
  if (exitCode !== 0) throw new Error(`the build ended with ${exitCode}: ${output}`);
  return { engineMs: Number(readFileSync(times, 'utf8')) / 1e6, wallMs, cpuMs: cpuOf(readFileSync(cpu, 'utf8')) };
}

/** What `times` of bash says, its own and its children's, such as `0m1.500s 0m0.250s`, in milliseconds. */
function cpuOf(times: string): number {
  const spent = Array.from(
    times.matchAll(/(\d+)m([\d.]+)s/g),
    ([, minutes, seconds]) => 60 * Number(minutes) + Number(seconds),
  );
  return 1000 * spent.reduce((sum, one) => sum + one, 0);
}
