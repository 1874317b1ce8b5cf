import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { tryBridge } from './bridge-trial.js';
import { CleanUp } from './clean-up.js';
import { tryCollector } from './collector-trial.js';
import { type CrashRow, crashTable } from './crash-table.js';

/** A longer trial: `CRASH_KILLS=1000 npm run test:crash -- crash.test`. The same again: with the `CRASH_SEED` that was printed. */
const KILLS = Number(process.env.CRASH_KILLS ?? 60);
const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 2 ** 31);
/** Collectors to compare with, by their configuration, and how often each is killed. */
const COLLECTORS = (process.env.CRASH_COLLECTORS ?? 'otelcol-queue').split(',').filter((name) => name !== '');
const COLLECTOR_KILLS = process.env.CRASH_KILLS === undefined ? 15 : KILLS;
/** A destination gets at most four requests of 1,024 spans at the same time. */
const MAX_IN_FLIGHT_REQUESTS = 4;
const MAX_IN_FLIGHT_SPANS = MAX_IN_FLIGHT_REQUESTS * 1_024;
const timeoutFor = (kills: number) => 180_000 + kills * 8_000;

const rows: CrashRow[] = [];
const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());
afterAll(() => console.log(`CRASH_SEED=${SEED}\n${crashTable(rows)}`));

describe('kill -9 under load, under export, at start-up, while Parquet is written and while stopping', () => {
  it(`loses nothing of what was acknowledged and repeats nothing but what was being sent, ${KILLS} times`, {
    timeout: timeoutFor(KILLS),
  }, async () => {
    console.log(`CRASH_SEED=${SEED} CRASH_KILLS=${KILLS}`);
    const trial = await tryBridge({ kills: KILLS, seed: SEED, cleanUp });
    const { row, counts, runCount, resentCount, drainMs, repeatedInLife, furthestRepeat } = trial;
    rows.push(row);
    console.log({
      ...counts,
      runs: runCount,
      bodiesSentAgain: resentCount,
      drainMs: Math.round(drainMs),
      furthestRepeat,
    });
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

  it.each(COLLECTORS)(
    'shows what the Collector with %s has then',
    { timeout: timeoutFor(COLLECTOR_KILLS) },
    async (config) => {
      const row = await tryCollector(config, { kills: COLLECTOR_KILLS, seed: SEED, cleanUp });
      rows.push(row);
      expect(row.acknowledged).toBeGreaterThan(0);
    },
  );
});
