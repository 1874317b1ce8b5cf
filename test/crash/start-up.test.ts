import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeManyRuns } from '../../bench/many-runs.js';
import { measureStart, type Start } from '../../bench/start.js';
import { CleanUp } from './clean-up.js';
import { median } from './median.js';

const RUNS = Number(process.env.START_UP_RUNS ?? 10_000);
const ROUNDS = 3;
/** A small one: files that are not read need not be large. */
const SAMPLE = 'test/fixture/samples/parse/otel.jsonl';
/** The goal is a second; the machine may be busy. */
const MAX_READY_MS = 3_000;
/** What the runs may add to the start on an empty folder, as CPU time: they are counted, not read. */
const MAX_MORE_CPU_MS = 1_000;
const DESTINATION = 'otlp';
const EXPORTING = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

const dist = dirname(process.env.CRASH_MAIN ?? 'dist/main.js');
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-start-up-'));
const cleanUp = new CleanUp();
cleanUp.folder(folder);
beforeAll(() => makeManyRuns(join(folder, 'many'), RUNS, dist, DESTINATION, SAMPLE));
afterAll(() => cleanUp.run());

describe(`a start on ${RUNS} finished runs`, () => {
  it.each([
    ['without destinations', {}],
    ['with a destination that has got them all', EXPORTING],
  ])('is ready as soon as one on an empty folder, %s', async (name, env) => {
    const empty = await starts(join(folder, `empty ${name}`), env);
    const many = await starts(join(folder, 'many'), env);
    const [emptyMs, manyMs] = [empty, many].map((list) => median(list.map(({ readyMs }) => readyMs)));
    console.log(`${name}: ready after ${manyMs?.toFixed(0)} ms (${emptyMs?.toFixed(0)} ms on an empty folder)`);
    const cpuMs = (list: readonly Start[]) => median(list.map((start) => start.cpuMs));
    console.log(`CPU until then: ${cpuMs(many)} ms (${cpuMs(empty)} ms)`);
    const afterwards = await measureStart({ dist, dataFolder: join(folder, 'many'), env, restMs: 8_000 });
    console.log(
      `${afterwards.restCpuMs} ms of CPU in seven seconds from the second on, ${afterwards.memory.toFixed(0)} MiB`,
    );
    expect(manyMs).toBeLessThan(MAX_READY_MS);
    expect(cpuMs(many) - cpuMs(empty)).toBeLessThan(MAX_MORE_CPU_MS);
  });
});

async function starts(dataFolder: string, env: Readonly<Record<string, string>>): Promise<readonly Start[]> {
  const list: Start[] = [];
  for (let round = 0; round < ROUNDS; round++) list.push(await measureStart({ dist, dataFolder, env, restMs: 0 }));
  return list;
}
