import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Engine } from '../test/tool/engine.js';
import { generateProject } from '../test/tool/many-models.js';
import { formatSpread, spreadOf } from './spread.js';

// What `exec` costs the engine: the same build alone and under it, in pairs, in turns of order.
const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '10' },
    models: { type: 'string', default: '1000' },
    dist: { type: 'string', default: 'dist' },
  },
});
const engine = Engine.up('core');
const project = generateProject(Number(values.models));
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-exec-bench-'));
const main = resolve(values.dist, 'main.js');

/** One build: the engine's own wall-clock and that of all of it, in milliseconds. */
interface Build {
  readonly engineMs: number;
  readonly wallMs: number;
}

try {
  const pairs: { readonly alone: Build; readonly wrapped: Build }[] = [];
  await build([]);
  for (let pair = 0; pair < Number(values.pairs); pair++) {
    const wrap = [process.execPath, main, 'exec', '--data-dir', join(folder, `data-${pair}`), '--'];
    if (pair % 2 === 0) pairs.push({ alone: await build([]), wrapped: await build(wrap) });
    else {
      const wrapped = await build(wrap);
      pairs.push({ alone: await build([]), wrapped });
    }
  }
  const of = (pick: (pair: (typeof pairs)[number]) => number) => formatSpread(spreadOf(pairs.map(pick)), 0);
  console.log(`${values.models} models, ${values.pairs} pairs`);
  console.log(`the engine alone: ${of(({ alone }) => alone.engineMs)} ms`);
  console.log(`the engine under exec: ${of(({ wrapped }) => wrapped.engineMs)} ms`);
  const percent = pairs.map(({ alone, wrapped }) => 100 * (wrapped.engineMs / alone.engineMs - 1));
  console.log(`the engine's wall-clock, of each pair: ${formatSpread(spreadOf(percent), 1)} % more`);
  console.log(`start and end of exec together: ${of(({ wrapped }) => wrapped.wallMs - wrapped.engineMs)} ms`);
} finally {
  rmSync(folder, { recursive: true, force: true });
  rmSync(project, { recursive: true, force: true });
  engine.remove();
}

async function build(wrap: readonly string[]): Promise<Build> {
  for (const made of ['logs', 'target', 'many.duckdb']) rmSync(join(project, made), { recursive: true, force: true });
  const times = join(folder, 'times');
  const script = `cd "$PROJECT"; a=$(date +%s%N); dbt build >/dev/null 2>&1; code=$?; b=$(date +%s%N); echo $((b - a)) > "$TIMES"; exit $code`;
  const startMs = performance.now();
  const { exitCode, output } = await engine.runCommand([...wrap, 'sh', '-c', script], {
    PROJECT: project,
    DBT_PROFILES_DIR: project,
    TIMES: times,
  });
  const wallMs = performance.now() - startMs;
  if (exitCode !== 0) throw new Error(`the build ended with ${exitCode}: ${output}`);
  return { engineMs: Number(readFileSync(times, 'utf8')) / 1e6, wallMs };
}
