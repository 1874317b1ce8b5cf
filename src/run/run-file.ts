import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { formatRun } from './run-document.js';
import type { RunSummary } from './run-summary.js';

/** Writes `run.json` beside a run's record log: whole or not at all, since it appears by renaming. */
export class RunFile {
  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(private readonly dataFolder: string) {}

  /** @throws when the file cannot be written. */
  async write(run: RunSummary): Promise<void> {
    const folder = join(this.dataFolder, 'runs', run.traceId);
    const path = join(folder, 'run.json');
    const partial = `${path}.partial`;
    const file = await open(partial, 'w');
    try {
      await file.writeFile(`${formatRun(run, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
  }
}
