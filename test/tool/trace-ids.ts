import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Trace ids of the runs in a data folder. Beside them a server may have a file there for a moment, by which it tries whether it can write. */
export function traceIdsIn(dataFolder: string): string[] {
  const runs = join(dataFolder, 'runs');
  return existsSync(runs) ? readdirSync(runs).filter((name) => !name.startsWith('.')) : [];
}
