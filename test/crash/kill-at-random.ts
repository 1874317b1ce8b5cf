import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterStage } from './cluster-stage.js';
import type { SeededRandom } from './seeded-random.js';
import type { Victim } from './victim.js';

/** Longer than a lease. */
const ABSENCE_MS = 18_000;

/**
 * Kills processes of a stage at random as long as something goes on; one at a time is away for longer than its lease.
 * @returns what was done, in words
 */
export async function killAtRandom(
  { processes, peers }: ClusterStage,
  random: SeededRandom,
  isGoingOn: () => boolean,
): Promise<readonly string[]> {
  const kills: string[] = [];
  const absent: Promise<void>[] = [];
  const away = new Set<Victim>();
  let longCount = 0;
  const startedMs = performance.now();
  while (isGoingOn()) {
    await pause(random.between(1_500, 5_000));
    const index = Math.floor(random.next() * processes.length);
    const victim = processes[index]?.victim;
    if (victim === undefined || away.has(victim)) continue;
    const isLong = random.next() < 0.3 && longCount === 0;
    if (isLong) longCount += 1;
    kills.push(`${Math.round(performance.now() - startedMs)} ms: process ${index}, ${isLong ? 'away' : 'restarted'}`);
    peers.sink.noteKill();
    await victim.end('SIGKILL');
    away.add(victim);
    const back = async () => {
      await pause(isLong ? ABSENCE_MS : random.between(0, 1_000));
      victim.spawn();
      await victim.ready();
      away.delete(victim);
      if (isLong) longCount -= 1;
    };
    absent.push(back());
  }
  await Promise.all(absent);
  return kills;
}
