import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../core/clock.js';
import { errorCode } from '../core/errors.js';
import { makeFolderIn } from '../core/folders.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { RowStore } from '../storage/row-store.js';

/** The folder of runs' rows in the data folder, a file a run by its number. */
export const ROWS_FOLDER = 'rows';

/** What the keeper works with. */
export interface RunRowBackupDeps {
  readonly store: Pick<RowStore, 'listUnkept' | 'noteKept'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is looked for runs that are over, in milliseconds; and how many are written at a time. */
const INTERVAL_MS = 2_000;
const AT_A_TIME = 100;
/** A data folder that is gone, full or not writable: the disk check reports it. */
const TOLD_BY_OTHERS: ReadonlySet<string> = new Set(['ENOENT', 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EACCES', 'full']);

/**
 * Writes the rows of finished runs, which only the database has, to files beside their record logs: ids, names, times,
 * steps without telemetry, output of commands. A lost database is rebuilt from them. A file appears by renaming; it is
 * not synced, since the database has the same data.
 */
export class RunRowBackup implements Component {
  readonly name = 'rows of runs';
  private timer: Timer | undefined;
  private working: Promise<void> = Promise.resolve();
  private isStopped = false;
  /** Whether it has failed since the last success; logged once. */
  private isFailing = false;

  /** @param dataFolder the data folder */
  constructor(
    private readonly dataFolder: string,
    private readonly deps: RunRowBackupDeps,
  ) {}

  async start(): Promise<void> {
    this.later();
  }

  /** Writes as many as time allows; the next start continues. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    await this.working;
    await this.keep(() => !deadline.aborted);
  }

  private later(): void {
    if (this.isStopped) return;
    this.timer = this.deps.clock.after(INTERVAL_MS, () => {
      this.working = this.keep(() => !this.isStopped).finally(() => this.later());
    });
  }

  private async keep(goesOn: () => boolean): Promise<void> {
    const { store, logger } = this.deps;
    try {
      for (let count = AT_A_TIME; count === AT_A_TIME && goesOn(); ) {
        const runs = await store.listUnkept(AT_A_TIME);
        count = runs.length;
        if (count === 0) break;
        await makeFolderIn(this.dataFolder, ROWS_FOLDER);
        for (const { runId, rows } of runs) await this.write(runId, rows);
        // Nothing is left of a run that was removed meanwhile.
        for (const runId of await store.noteKept(runs)) await rm(this.pathOf(runId), { force: true });
      }
      this.isFailing = false;
    } catch (error) {
      const isNew = !this.isFailing;
      this.isFailing = true;
      if (!isNew || TOLD_BY_OTHERS.has(errorCode(error) ?? '')) return;
      logger.warn({ error: String(error) }, 'failed to back up rows of runs to files; retrying');
    }
  }

  private async write(runId: number, rows: object): Promise<void> {
    const path = this.pathOf(runId);
    await writeFile(`${path}.partial`, `${JSON.stringify(rows)}\n`, { mode: 0o600 });
    await rename(`${path}.partial`, path);
  }

  private pathOf(runId: number): string {
    return join(this.dataFolder, ROWS_FOLDER, `${runId}.json`);
  }
}
