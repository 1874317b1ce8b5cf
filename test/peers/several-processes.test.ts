import { afterEach, describe, expect, it } from 'vitest';
import { CleanUp } from '../crash/clean-up.js';
import { type ClusterFigures, type ClusterTrialOptions, tryCluster } from '../crash/cluster-trial.js';
import { DISTURBANCES, disturbAtRandom } from '../crash/disturb-at-random.js';
import { suspendOne } from '../crash/suspend-one.js';

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const seed = Number(process.env.SEED ?? 1 + (Date.now() % 1_000_000));
const MINUTE_MS = 60_000;
/** `npm run trial:kafka` sets these. */
const runCount = Number(process.env.RUNS ?? 100);
const atOnceMs = Number(process.env.TRIAL_SECONDS ?? 30) * 1_000;
/** Between two disturbances: those of a long trial leave time to get on, since a Kafka that was killed takes a while to come back. */
const gapMs = atOnceMs > MINUTE_MS ? ([8_000, 24_000] as const) : ([2_000, 6_000] as const);
const samples = process.env.CORPUS?.split(',');

/** @param isExpected what processes may say that is an error */
async function tried(
  options: Omit<ClusterTrialOptions, 'seed' | 'cleanUp'>,
  isExpected: (line: string) => boolean = () => false,
): Promise<ClusterFigures> {
  const figures = await tryCluster({ ...options, seed, cleanUp });
  const { log, parquet, sinkSpans, sinkLogs, webhooks, writes, disturbances, errors, problems, ...rest } = figures;
  console.log(`SEED=${seed}: ${disturbances.join('; ')}`);
  console.log(JSON.stringify({ ...rest, log, parquet, sinkSpans, sinkLogs, attemptCount: figures.attemptCount }));
  console.log(JSON.stringify({ webhooks, writes }));
  expect(figures.refusals).toEqual([]);
  expect(problems).toEqual([]);
  expect(log.badLines).toEqual([]);
  for (const one of [log.spans, log.spanStarts, log.logs, parquet.spans, parquet.logs]) {
    expect(one).toMatchObject({ missing: 0, excess: 0 });
  }
  expect(sinkSpans.missing).toBe(0);
  expect(figures.unreadCount).toBe(0);
  expect(webhooks).toMatchObject({ missing: [], madeUp: [], withSeveralIds: [] });
  expect(writes.problems).toEqual([]);
  expect(figures.listed).toEqual(figures.listed.map(() => figures.commandCount));
  expect(figures.wrongAnswers).toEqual([]);
  expect(errors.filter((line) => !isExpected(line))).toEqual([]);
  return figures;
}

describe('three processes on one database and one bucket', () => {
  it(`keep every record once and end every run once, with receivers in front, whatever happens (SEED=${seed})`, {
    timeout: 10 * MINUTE_MS + 8 * atOnceMs,
  }, async () => {
    const load = { runCount, atOnceMs, ...(samples !== undefined && { samples }) };
    // The database and what else it needs does not answer for a while.
    const isExpected = (line: string) => /cannot be reached|the connection was lost|retrying/.test(line);
    const figures = await tried({ receiverCount: 2, load, disturb: disturbAtRandom(DISTURBANCES, gapMs) }, isExpected);
    expect(figures.runCount).toBe(runCount);
  });

  it(`bring every run to its end, once, whichever of them are killed (SEED=${seed})`, {
    timeout: 10 * MINUTE_MS,
  }, async () => {
    const figures = await tried({ load: { runCount: 100 }, disturb: disturbAtRandom(['killBuilder'], [1_500, 5_000]) });
    expect(figures.runCount).toBeGreaterThanOrEqual(100);
  });

  it(`bring every run to its end, once, when one is suspended for longer than its lease (SEED=${seed})`, {
    timeout: 5 * MINUTE_MS,
  }, async () => {
    // What was just being sent to it, it refuses; a transaction that it was in was ended for it, and what it was at is
    // another's now, which it finds out by trying.
    const isExpected = (line: string) =>
      /failed to renew its lease|the connection was lost|it is tried again|senders are asked to retry|retrying/.test(
        line,
      );
    await tried({ load: { runCount: 1 }, disturb: suspendOne }, isExpected);
  });
});
