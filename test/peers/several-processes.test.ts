import { afterEach, describe, expect, it } from 'vitest';
import { CleanUp } from '../crash/clean-up.js';
import { type ClusterFigures, type ClusterTrialOptions, tryCluster } from '../crash/cluster-trial.js';
import { DISTURBANCES, disturbAtRandom, disturbInTurn } from '../crash/disturb.js';
import { suspendOne } from '../crash/suspend-one.js';
import { TRIAL, trialSize } from '../tool/trial.js';

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const MINUTE_MS = 60_000;
/** More, and large ones: `RUNS=200 CORPUS=big-build npm run trials -- --only processes`. */
const runCount = Number(process.env.RUNS ?? 100);
/** A quarter of a trial's time; the rest is for two more trials, and for storing and auditing what came. */
const atOnceMs = trialSize(30, 4) * 1_000;
/** Between two disturbances: those of a long trial leave time to get on, since a Kafka that was killed takes a while to come back. */
const gapMs = atOnceMs > MINUTE_MS ? ([8_000, 24_000] as const) : ([2_000, 6_000] as const);
const samples = process.env.CORPUS?.split(',');

/** @param isExpected what processes may say that is an error */
async function tried(
  options: Omit<ClusterTrialOptions, 'seed' | 'cleanUp'>,
  isExpected: (line: string) => boolean = () => false,
): Promise<ClusterFigures> {
  const figures = await tryCluster({ ...options, seed: TRIAL.seed, cleanUp });
  const { log, parquet, sinkSpans, sinkLogs, webhooks, writes, disturbances, errors, problems, ...rest } = figures;
  console.log(disturbances.join('; '));
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
  // The database and what else it needs does not answer for a while.
  const isOutage = (line: string) => /cannot be reached|the connection was lost|retrying/.test(line);

  it.runIf(TRIAL.seconds === undefined)(
    'keep every record once and end every run once, with receivers in front, whatever happens to them one after the other',
    { timeout: 15 * MINUTE_MS },
    async () => {
      const load = { runCount: 40, atOnceMs: MINUTE_MS };
      const figures = await tried({ receiverCount: 2, load, disturb: disturbInTurn(DISTURBANCES) }, isOutage);
      expect(figures.disturbances).toHaveLength(DISTURBANCES.length);
      expect(figures.runCount).toBe(load.runCount);
    },
  );

  describe.runIf(TRIAL.seconds !== undefined)('as a trial', () => {
    it('keep every record once and end every run once, with receivers in front, whatever happens', {
      timeout: 10 * MINUTE_MS + 8 * atOnceMs,
    }, async () => {
      const load = { runCount, atOnceMs, ...(samples !== undefined && { samples }) };
      const figures = await tried({ receiverCount: 2, load, disturb: disturbAtRandom(DISTURBANCES, gapMs) }, isOutage);
      expect(figures.runCount).toBe(runCount);
    });

    it('bring every run to its end, once, whichever of them are killed', { timeout: 10 * MINUTE_MS }, async () => {
      const disturb = disturbAtRandom(['killBuilder'], [1_500, 5_000]);
      const figures = await tried({ load: { runCount: 100 }, disturb });
      expect(figures.runCount).toBeGreaterThanOrEqual(100);
    });

    it('bring every run to its end, once, when one is suspended for longer than its lease', {
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
});
