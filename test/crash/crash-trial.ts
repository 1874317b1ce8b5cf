import { setTimeout as pause } from 'node:timers/promises';
import type { CountingSink } from './counting-sink.js';
import type { KillMoment } from './kill-plan.js';
import type { Load } from './load.js';
import { median } from './median.js';
import type { SeededRandom } from './seeded-random.js';
import type { Victim } from './victim.js';

/** What a trial needs. */
export interface CrashTrialParts {
  readonly victim: Victim;
  readonly load: Load;
  readonly sink: CountingSink;
  readonly random: SeededRandom;
  /** Whether it is writing a Parquet file just now. */
  isWritingParquet(): boolean;
  /** Called after each kill, while nothing runs. */
  onDead(): void;
}

/** How often it was killed, and when. */
export type KillCounts = Readonly<Record<KillMoment, number>>;

/**
 * How many bodies a life takes before its moment is waited for, at most; short lives are more frequent. Counted, so that as
 * much is done between two kills on a slow machine as on a fast one.
 */
const MAX_BODIES = 120;
/** Then so long at most, in milliseconds: the moment is anywhere between two bodies. */
const MAX_JITTER_MS = 40;
/** How long something is waited for that may not come (nothing to export, no run over). */
const MAX_WAIT_MS = 4_000;
const MAX_SHUTDOWN_MS = 120;

/**
 * Kills a server at planned moments under load, starting it again each time, and starts it a last time. When it resolves
 * the server runs and every run that was begun is sent to its end.
 */
export async function crashRepeatedly(plan: readonly KillMoment[], parts: CrashTrialParts): Promise<KillCounts> {
  const { victim, load } = parts;
  const counts = { load: 0, export: 0, startUp: 0, parquet: 0, shutdown: 0 };
  victim.spawn();
  await victim.ready();
  load.start();
  for (const moment of plan) {
    if (moment !== 'startUp') await victim.ready();
    counts[await killAt(moment, parts)] += 1;
    parts.onDead();
    victim.spawn();
  }
  await victim.ready();
  await load.finish();
  return counts;
}

/** @returns the moment at which it was killed: another one where the planned one did not come. */
async function killAt(moment: KillMoment, parts: CrashTrialParts): Promise<KillMoment> {
  const { victim, random, sink, load } = parts;
  let hit = moment;
  if (moment !== 'startUp') {
    const enough = load.acknowledgedCount + Math.floor(random.next() ** 2 * MAX_BODIES);
    await isSeen(() => load.acknowledgedCount >= enough);
  }
  switch (moment) {
    case 'load':
      await pause(random.between(0, MAX_JITTER_MS));
      break;
    case 'export':
      hit = (await within(sink.nextRequest(), MAX_WAIT_MS)) ? 'export' : 'load';
      break;
    case 'startUp':
      // It was started just now, and nobody waited for it to be ready.
      await pause(random.between(0, 1.5 * median(victim.recoveriesMs)));
      break;
    case 'parquet':
      hit = (await isSeen(() => parts.isWritingParquet())) ? 'parquet' : 'load';
      break;
    case 'shutdown':
      victim.signal('SIGTERM');
      await pause(random.between(0, MAX_SHUTDOWN_MS));
      break;
  }
  await victim.end('SIGKILL');
  return hit;
}

/** Whether it came to pass in time. */
async function within(event: Promise<void>, timeoutMs: number): Promise<boolean> {
  const tooLate = new AbortController();
  const timeout = pause(timeoutMs, false, { signal: tooLate.signal }).catch(() => false);
  const isThere = await Promise.race([event.then(() => true), timeout]);
  tooLate.abort();
  return isThere;
}

async function isSeen(look: () => boolean): Promise<boolean> {
  const end = performance.now() + MAX_WAIT_MS;
  while (performance.now() < end) {
    if (look()) return true;
    await pause(1);
  }
  return false;
}
