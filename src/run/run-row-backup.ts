import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, FixedDelayTask } from '../core/clock.js';
import { errorCode } from '../core/errors.js';
import { makeFolderIn, namesIn } from '../core/folders.js';
import type { Component } from '../core/lifecycle.js';
import { slices } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import type { RowStore } from '../storage/row-store.js';
import type { RunRows } from '../storage/run-rows.js';

/** The folder of runs' rows in the data folder, a file a run by its number. */
const ROWS_FOLDER = 'rows';

/** What the backup works with. */
export interface RunRowBackupDeps {
  readonly store: Pick<RowStore, 'listWithoutBackup' | 'noteBackedUp'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is looked for runs that are over, in milliseconds; and how many are written at a time. */
const INTERVAL_MS = 2_000;
const AT_A_TIME = 100;
/** A data folder that is gone, full or not writable: the disk check reports it. */
const REPORTED_ELSEWHERE: ReadonlySet<string> = new Set([
  'ENOENT',
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EACCES',
  'full',
]);

/**
 * Writes the rows of finished runs, which only the database has, to files beside their record logs: ids, names, times,
 * steps without telemetry, output of commands. A lost database is rebuilt from them. A file appears by renaming; it is
 * not synced, since the database has the same data.
 */
export class RunRowBackup implements Component {
  readonly name = 'rows of runs';
  private readonly repeated: FixedDelayTask;
  private isStopped = false;
  /** Whether it has failed since the last success; logged once. */
  private isFailing = false;

  /** @param dataFolder the data folder */
  constructor(
    private readonly dataFolder: string,
    private readonly deps: RunRowBackupDeps,
  ) {
    const { clock } = deps;
    this.repeated = new FixedDelayTask(
      INTERVAL_MS,
      clock,
      () => this.keep(() => !this.isStopped),
      (error) => this.fail(error),
    );
  }

  async start(): Promise<void> {
    this.repeated.start();
  }

  /** Writes as many as time allows; the next start continues. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    await this.repeated.stop();
    await this.keep(() => !deadline.aborted).catch((error: unknown) => this.fail(error));
  }

  private async keep(goesOn: () => boolean): Promise<void> {
    const { store } = this.deps;
    for (let count = AT_A_TIME; count === AT_A_TIME && goesOn(); ) {
      const runs = await store.listWithoutBackup(AT_A_TIME);
      count = runs.length;
      if (count === 0) break;
      await makeFolderIn(this.dataFolder, ROWS_FOLDER);
      for (const { runId, rows } of runs) await this.write(runId, rows);
      // Nothing is left of a run that was removed meanwhile.
      for (const runId of await store.noteBackedUp(runs)) await rm(rowsFileOf(this.dataFolder, runId), { force: true });
    }
    this.isFailing = false;
  }

  private fail(error: unknown): void {
    const isNew = !this.isFailing;
    this.isFailing = true;
    if (!isNew || REPORTED_ELSEWHERE.has(errorCode(error) ?? '')) return;
    this.deps.logger.warn({ error: String(error) }, 'failed to back up rows of runs to files; retrying');
  }

  private async write(runId: number, rows: RunRows): Promise<void> {
    const path = rowsFileOf(this.dataFolder, runId);
    await writeFile(`${path}.partial`, `${JSON.stringify(rows)}\n`, { mode: 0o600 });
    await rename(`${path}.partial`, path);
  }
}

/**
 * Reads the rows that `RunRowBackup` wrote, in the order of the runs' numbers, some at a time.
 * @param damaged takes the paths of those that cannot be read
 */
export async function* readRunRows(
  dataFolder: string,
  atATime: number,
  damaged: string[],
): AsyncGenerator<readonly RunRows[]> {
  // Loaded when there is something to read back: no start has to wait for a schema library.
  const { parseRunRows } = await import('../storage/run-rows.js');
  const runIds = await listRunsWithRows(dataFolder);
  for (const some of slices(runIds, atATime)) {
    const batch: RunRows[] = [];
    for (const path of some.map((runId) => rowsFileOf(dataFolder, runId))) {
      const rows = parseRunRows(await readFile(path, 'utf8'));
      if (rows === undefined) damaged.push(path);
      else batch.push(rows);
    }
    yield batch;
  }
}

/** Lists the ids of the runs whose rows are backed up, in ascending order. */
export async function listRunsWithRows(dataFolder: string): Promise<readonly number[]> {
  const names = await namesIn(join(dataFolder, ROWS_FOLDER));
  const runIds = names.flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []).map(Number);
  return runIds.sort((a, b) => a - b);
}

/** The file of a run's backed-up rows. */
export function rowsFileOf(dataFolder: string, runId: number): string {
  return join(dataFolder, ROWS_FOLDER, `${runId}.json`);
}
