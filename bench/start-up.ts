import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeManyRuns } from './many-runs.js';
import { measureNode } from './measured-process.js';
import { formatSpread, spreadOf } from './spread.js';
import { measureStart, type Start } from './start.js';

const SAMPLE = 'test/fixture/samples/build-clean/otel.jsonl';
/** The name of the destination that the environment describes. */
const DESTINATION = 'otlp';
/** Nobody listens there; a start does not wait for destinations. */
const EXPORTING = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    runs: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '30' },
    dist: { type: 'string', default: 'dist' },
  },
});
const { dist } = values;
const rounds = Number(values.rounds);
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-start-'));
try {
  await measureCommands();
  await measureStarts('an empty folder', () => join(folder, 'empty'));
  await measureStarts('an empty folder, one destination', () => join(folder, 'exporting'), EXPORTING);
  const [sent, added] = [join(folder, 'sent'), join(folder, 'added')];
  await makeManyRuns(sent, Number(values.runs), dist, DESTINATION);
  await measureStarts(`${values.runs} finished runs`, () => sent);
  await measureStarts(`${values.runs} finished runs, all exported`, () => sent, EXPORTING);
  await makeManyRuns(added, Number(values.runs), dist, null);
  await measureStarts(`${values.runs} finished runs, a destination added`, () => added, EXPORTING);
  const rest = await measureStart({ dist, dataFolder: join(folder, 'rest'), restMs: 1_000 * Number(values.seconds) });
  console.log(`at rest for ${values.seconds} s: ${rest.memory.toFixed(0)} MiB, ${rest.restCpuMs} ms of CPU`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measureCommands(): Promise<void> {
  let imports = 0;
  const commands: readonly (readonly [string, () => readonly string[]])[] = [
    ['--version', () => ['--version']],
    ['--help', () => ['--help']],
    ['import of a small file', () => ['import', SAMPLE, '--data-dir', join(folder, `import-${++imports}`)]],
  ];
  for (const [name, args] of commands) {
    const wallMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      wallMs.push((await measureNode([join(dist, 'main.js'), ...args()])).wallMs);
    }
    console.log(`${name}: ${formatSpread(spreadOf(wallMs), 0)} ms`);
  }
}

async function measureStarts(name: string, dataFolder: () => string, env?: Readonly<Record<string, string>>) {
  const starts: Start[] = [];
  for (let round = 0; round < rounds; round++) {
    starts.push(await measureStart({ dist, dataFolder: dataFolder(), restMs: 0, ...(env && { env }) }));
  }
  const figures = (of: (start: Start) => number) => formatSpread(spreadOf(starts.map(of)), 0);
  console.log(
    `start on ${name}: ready after ${figures(({ readyMs }) => readyMs)} ms, ` +
      `${figures(({ cpuMs }) => cpuMs)} ms of CPU, ${figures(({ memory }) => memory)} MiB`,
  );
}
