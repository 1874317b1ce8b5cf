import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { traceIdOf } from './load-ids.js';
import type { PlannedRun } from './run-plan.js';
import type { SeededRandom } from './seeded-random.js';

/**
 * Appends the first part of a line to the record log of a run that goes on: what a crash of the machine leaves of a write
 * that was never answered. A kill alone seldom catches a write in its middle.
 */
export function tearLastLine(dataFolder: string, inProgress: readonly PlannedRun[], random: SeededRandom): void {
  if (inProgress.length === 0) return;
  const traceId = traceIdOf(random.pick(inProgress).runNumber).toString('hex');
  const path = join(dataFolder, 'runs', traceId, 'telemetry.jsonl');
  if (!existsSync(path)) return;
  const line = readFileSync(path, 'utf8').trimEnd().split('\n').at(-1) ?? '';
  appendFileSync(path, line.slice(0, Math.floor(random.between(1, line.length))));
}
