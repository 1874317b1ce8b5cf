import { afterAll, describe, expect, it } from 'vitest';
import { CleanUp } from '../crash/clean-up.js';
import { tryCluster } from '../crash/cluster-trial.js';

const cleanUp = new CleanUp();
afterAll(() => cleanUp.run());

const seed = Number(process.env.SEED ?? 1 + (Date.now() % 1_000_000));
const runCount = Number(process.env.RUNS ?? 200);

describe('three processes on one database and one bucket', () => {
  it(`bring every run to its end, once, whichever of them are killed (SEED=${seed})`, {
    timeout: 600_000,
  }, async () => {
    const figures = await tryCluster({ seed, runCount, cleanUp });
    console.log(`${figures.runCount} runs, ${figures.kills.length} kills: ${figures.kills.join('; ')}`);
    const { log, parquet, sinkSpans } = figures;
    expect(figures.runCount).toBeGreaterThanOrEqual(runCount);
    expect(figures.refusals).toEqual([]);
    expect(figures.problems).toEqual([]);
    expect(log.badLines).toEqual([]);
    for (const one of [log.spans, log.spanStarts, log.logs, parquet.spans, parquet.logs]) {
      expect(one).toMatchObject({ missing: 0, excess: 0 });
    }
    expect(sinkSpans.missing).toBe(0);
    expect(figures.leftObjects).toEqual([]);
    expect(figures.listed).toEqual(figures.listed.map(() => figures.commandCount));
    expect(figures.wrongAnswers).toEqual([]);
    expect(figures.errors).toEqual([]);
  });
});
