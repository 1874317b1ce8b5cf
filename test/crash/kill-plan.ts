import type { SeededRandom } from './seeded-random.js';

/**
 * Moments at which a server is killed:
 * - `load`: at any time under load;
 * - `export`: while a request of its export waits for the answer;
 * - `startUp`: at any time from its start to shortly after it is ready, when it takes up what the last life left;
 * - `parquet`: while a Parquet file is being written;
 * - `shutdown`: at any time after SIGTERM.
 */
export type KillMoment = 'load' | 'export' | 'startUp' | 'parquet' | 'shutdown';

const WEIGHTS: Readonly<Record<KillMoment, number>> = { load: 16, export: 12, startUp: 10, parquet: 7, shutdown: 7 };

/** A moment for each kill, in random order; each kind has its share. */
export function planKills(count: number, kinds: readonly KillMoment[], random: SeededRandom): readonly KillMoment[] {
  const total = kinds.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  const shares = kinds.flatMap((kind) =>
    Array.from({ length: Math.ceil((count * WEIGHTS[kind]) / total) }, (): KillMoment => kind),
  );
  return random.shuffle(shares).slice(0, count);
}
