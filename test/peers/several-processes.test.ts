import { afterEach, describe, expect, it } from 'vitest';
import { CleanUp } from '../crash/clean-up.js';
import { type ClusterFigures, type ClusterTrialOptions, tryCluster } from '../crash/cluster-trial.js';
import { killAtRandom } from '../crash/kill-at-random.js';
import { suspendOne } from '../crash/suspend-one.js';

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const seed = Number(process.env.SEED ?? 1 + (Date.now() % 1_000_000));
const manyRuns = Number(process.env.RUNS ?? 200);

/** @param isExpected what processes may say that is an error */
async function tried(
  runCount: number,
  disturb: ClusterTrialOptions['disturb'],
  isExpected: (line: string) => boolean = () => false,
): Promise<ClusterFigures> {
  const figures = await tryCluster({ seed, runCount, cleanUp, disturb });
  console.log(`${figures.runCount} runs, ${figures.kills.length} times: ${figures.kills.join('; ')}`);
  const { log, parquet, sinkSpans } = figures;
  expect(figures.refusals).toEqual([]);
  expect(figures.problems).toEqual([]);
  expect(log.badLines).toEqual([]);
  for (const one of [log.spans, log.spanStarts, log.logs, parquet.spans, parquet.logs]) {
    expect(one).toMatchObject({ missing: 0, excess: 0 });
  }
  expect(sinkSpans.missing).toBe(0);
  expect(figures.unreadCount).toBe(0);
  expect(figures.listed).toEqual(figures.listed.map(() => figures.commandCount));
  expect(figures.wrongAnswers).toEqual([]);
  expect(figures.errors.filter((line) => !isExpected(line))).toEqual([]);
  return figures;
}

describe('three processes on one database and one bucket', () => {
  it(`bring every run to its end, once, whichever of them are killed (SEED=${seed})`, {
    timeout: 600_000,
  }, async () => {
    expect((await tried(manyRuns, killAtRandom)).runCount).toBeGreaterThanOrEqual(manyRuns);
  });

  it(`bring every run to its end, once, when one is suspended for longer than its lease (SEED=${seed})`, {
    timeout: 300_000,
  }, async () => {
    // What was just being sent to it, it refuses; a transaction that it was in was ended for it, and what it was at is
    // another's now, which it finds out by trying.
    const isExpected = (line: string) =>
      /failed to renew its lease|the connection was lost|it is tried again|senders are asked to retry|retrying/.test(
        line,
      );
    await tried(1, suspendOne, isExpected);
  });
});
