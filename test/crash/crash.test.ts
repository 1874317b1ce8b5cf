import { afterEach, expect, it } from 'vitest';
import { TRIAL, trialSize } from '../tool/trial.js';
import { tryBridge } from './bridge-trial.js';
import { CleanUp } from './clean-up.js';
import { crashTable } from './crash-table.js';
import { inTurn, planKills } from './kill-plan.js';
import { SeededRandom } from './seeded-random.js';

/** Twice each moment, in turn; as a trial a random plan of so many. */
const KILLS = trialSize(10, 4);
/** A destination gets at most four requests of 1,024 spans at the same time. */
const MAX_IN_FLIGHT_REQUESTS = 4;
const MAX_IN_FLIGHT_SPANS = MAX_IN_FLIGHT_REQUESTS * 1_024;

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

it('loses nothing of what was acknowledged and repeats nothing but what was being sent, killed under load, under export, at start-up, while Parquet is written and while stopping', {
  timeout: 180_000 + KILLS * 8_000,
}, async () => {
  const random = new SeededRandom(TRIAL.seed + 3);
  const plan = TRIAL.seconds === undefined ? inTurn(KILLS) : planKills(KILLS, random);
  const trial = await tryBridge({ plan, seed: TRIAL.seed, cleanUp });
  const { row, counts, runCount, resentCount, drainMs, repeatedInLife, furthestRepeat } = trial;
  console.log({
    ...counts,
    runs: runCount,
    bodiesSentAgain: resentCount,
    drainMs: Math.round(drainMs),
    furthestRepeat,
  });
  console.log(crashTable([row]));
  expect.soft(trial.refusals).toEqual([]);
  expect.soft(trial.exitCode).toBe(0);
  const exactlyOnce = { missing: 0, excess: 0 };
  expect.soft(trial.log.badLines).toEqual([]);
  expect.soft(trial.log).toMatchObject({ spans: exactlyOnce, spanStarts: exactlyOnce, logs: exactlyOnce });
  expect.soft(trial.parquet).toMatchObject({ spans: exactlyOnce, logs: exactlyOnce });
  expect.soft(trial.sinkSpans.missing).toBe(0);
  expect.soft(trial.sinkLogs.missing).toBe(0);
  expect.soft(trial.problems).toEqual([]);
  expect.soft(repeatedInLife).toBe(0);
  // Those that were under way, and those whose answer had come and was not yet noted.
  expect.soft(furthestRepeat).toBeLessThanOrEqual(2 * MAX_IN_FLIGHT_REQUESTS);
  expect.soft(trial.sinkSpans.excess).toBeLessThanOrEqual(KILLS * MAX_IN_FLIGHT_SPANS);
});
