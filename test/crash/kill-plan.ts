import type { SeededRandom } from './seeded-random.js';

/**
 * Moments at which the program is killed:
 * - `load`: at any time under load;
 * - `export`: while a request of its export waits for the answer;
 * - `startUp`: at any time from its start to shortly after it is ready, when it takes up what the last life left;
 * - `parquet`: while a Parquet file is being written;
 * - `shutdown`: at any time after SIGTERM.
 */
export type KillMoment = 'load' | 'export' | 'startUp' | 'parquet' | 'shutdown';

const WEIGHTS: Readonly<Record<KillMoment, number>> = { load: 16, export: 12, startUp: 10, parquet: 7, shutdown: 7 };
const MOMENTS: readonly KillMoment[] = ['load', 'export', 'startUp', 'parquet', 'shutdown'];
const TOTAL = MOMENTS.reduce((sum, moment) => sum + WEIGHTS[moment], 0);

/** So many moments, each kind in its turn. */
export function inTurn(count: number): readonly KillMoment[] {
  return Array.from({ length: count }, (_, index) => MOMENTS[index % MOMENTS.length] ?? 'load');
}

/** A moment for each kill, in random order; each kind has its share. */
export function planKills(count: number, random: SeededRandom): readonly KillMoment[] {
  const shares = MOMENTS.flatMap((moment) =>
    Array.from({ length: Math.ceil((count * WEIGHTS[moment]) / TOTAL) }, () => moment),
  );
  return random.shuffle(shares).slice(0, count);
}
