import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FIRST_TOKEN_FILE } from '../api/first-token.js';
import { ARTIFACTS_FOLDER } from '../artifact/feature.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { namesIn } from '../core/folders.js';
import { type Logger, silentLogger } from '../core/logger.js';
import { listTraces } from '../log/record-log-files.js';
import { listRunsWithRows } from '../run/run-row-backup.js';
import { STATE_FILE } from '../storage/data-folder.js';
import type { Fence } from '../storage/journal-store.js';
import { openSqliteState } from '../storage/sqlite-state.js';
import type { State } from '../storage/state.js';
import { StoreError } from '../storage/store-error.js';
import { openOutbox, type WebhookOutbox } from '../webhook/feature.js';

/**
 * Opens the configured state, in PostgreSQL or in the data folder, which must exist.
 * @param outbox writes events for webhooks; a new one by default, so that every program that changes a run writes its events
 * @param fence the identity of this process, if several share the database
 * @throws StoreError
 */
export async function openState(
  configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
  clock: Clock,
  outbox?: WebhookOutbox,
  fence?: Fence,
): Promise<State> {
  const { 'data-dir': dataFolder, 'database-url': url } = configuration;
  const observer = outbox ?? (await openOutbox({ clock }));
  if (url === 'off') {
    await refuseEmptied(dataFolder);
    return await openSqliteState(join(dataFolder, STATE_FILE), undefined, observer);
  }
  const { openPostgresState } = await import('../storage/postgres-state.js');
  return await openPostgresState(url, clock, undefined, observer, fence);
}

/** Opens the configured state, and reserves the ids of runs that are only in the data folder. @throws StoreError */
export async function openStateForCommand(configuration: Configuration, clock: Clock): Promise<State> {
  const state = await openState(configuration, clock);
  try {
    const { 'data-dir': dataFolder, processes } = configuration;
    if (processes !== 'several') await sayIfStateIsNew(state, { dataFolder, isElsewhere: false, logger: silentLogger });
    return state;
  } catch (error) {
    await state.close();
    throw error;
  }
}

/**
 * Warns if a state contains no runs although the data folder has some, and reserves their ids: their backed-up rows, from which `rebuild` restores the state, and their artifacts are stored under
 * these.
 * @param isElsewhere whether the state is in a database, where no start makes it anew from traces alone
 */
export async function sayIfStateIsNew(
  state: State,
  {
    dataFolder,
    isElsewhere,
    logger,
  }: { readonly dataFolder: string; readonly isElsewhere: boolean; readonly logger: Logger },
): Promise<void> {
  if (!(await state.rows.isEmpty())) return;
  const left = await leftFromBefore(dataFolder);
  if (left.lastRunId > 0) await state.rows.reserveRunIds(left.lastRunId);
  if (left.runCount === 0 && (left.traceCount === 0 || !isElsewhere)) return;
  logger.warn(
    { dataFolder, traces: left.traceCount, runs: left.runCount },
    'the state is new, but the data folder holds runs; they are restored from their record logs, with new ids and without jobs and tokens: to restore everything, stop and run run-bridge rebuild',
  );
}

/**
 * Makes the missing state file of a locked data folder anew, if the folder holds runs: nothing can be lost by it, and runs keep
 * their ids.
 * @throws StoreError
 */
export async function rebuildMissingState(
  dataFolder: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<void> {
  const { traceCount, runCount } = await leftFromBefore(dataFolder);
  if (traceCount === 0 && runCount === 0) return;
  // Loaded when there is something to restore: no other start has to wait for it.
  const { rebuildStateFile } = await import('./rebuild-state.js');
  const rebuilt = await rebuildStateFile(dataFolder, clock);
  logger.warn(
    { dataFolder, runs: rebuilt.runCount, traces: rebuilt.traceCount },
    'state.db was missing and was made anew from the rest of the data folder; lost are tokens but the one in admin-token, accounts but the first, subscriptions to webhooks, and how far exports were: if you have a backup, stop and restore it',
  );
}

/** Refuses an empty state file beside data. It is left by a start that was killed immediately, or by a lost state. */
async function refuseEmptied(dataFolder: string): Promise<void> {
  const path = join(dataFolder, STATE_FILE);
  if (statSync(path, { throwIfNoEntry: false })?.size !== 0) return;
  const { traceCount, runCount, hasToken } = await leftFromBefore(dataFolder);
  if (traceCount === 0 && runCount === 0 && !hasToken) return;
  const rest = traceCount === 0 && runCount === 0 ? 'a token' : 'runs';
  throw new StoreError(
    'corrupt',
    `${path}: the file is empty, although the data folder holds ${rest}; run-bridge rebuild creates a new one from the rest of the data folder and keeps this one`,
  );
}

/** The contents of a data folder besides its state. */
interface LeftFromBefore {
  readonly traceCount: number;
  /** The number of runs with backed-up rows. */
  readonly runCount: number;
  /** The highest run id in the folder; 0 if there is none. */
  readonly lastRunId: number;
  /** Whether the token of a first start exists. */
  readonly hasToken: boolean;
}

async function leftFromBefore(dataFolder: string): Promise<LeftFromBefore> {
  const runIds = await listRunsWithRows(dataFolder);
  const withArtifacts = (await namesIn(join(dataFolder, ARTIFACTS_FOLDER)))
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return {
    traceCount: (await listTraces(dataFolder)).length,
    runCount: runIds.length,
    lastRunId: [...runIds, ...withArtifacts].reduce((last, id) => Math.max(last, id), 0),
    hasToken: existsSync(join(dataFolder, FIRST_TOKEN_FILE)),
  };
}
