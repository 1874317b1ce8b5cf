import { type SqlBool, sql, type Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { isExportPending } from './cursor-store.js';
import { changeState, type DatabaseTraits } from './database.js';
import { deleteTraces, isAnyOpen, lockTraces } from './journal-store.js';
import { deleteRunRows, runsOfTraces, tracesOfRuns } from './row-store.js';
import { isFinal, type StateDb, type StateTables } from './state-tables.js';

/** A run that is over. */
export interface EndedRun {
  readonly runId: number;
  readonly finishedUnixMs: number;
}

/** Runs that go together, since traces hold records of several of them; mostly one run with the traces of its steps. */
export interface RunGroup {
  readonly runIds: readonly number[];
  readonly traceIds: readonly TraceId[];
  /** When the last part of it ended, or its last record arrived, whichever is later. */
  readonly endedUnixMs: number;
  /** Whether any part of it is active: a run, a trace without a verdict, or one that a process looks after. */
  readonly isLive: boolean;
  /** Whether one of the destinations has not got all of it, and has not given it up. */
  readonly isPending: boolean;
}

/**
 * Files to remove, whose rows are gone: those of a trace; its folder if that has already been
 * moved (`moved`); an object in the shared bucket; all files of a run by its id, or only its artifacts.
 */
export interface Removal {
  readonly kind: 'trace' | 'moved' | 'object' | 'run' | 'artifacts';
  readonly id: string;
}

/** What something takes. */
export interface RetainedSize {
  readonly fileCount: number;
  readonly sizeBytes: number;
}

/** Where files of traces are: they are counted and removed there. */
export interface TelemetryStorage {
  /** Returns what all of them take, in bytes. */
  totalBytes(signal: AbortSignal): Promise<number>;
  usageOf(traceIds: readonly TraceId[]): Promise<RetainedSize>;
  /** Moves files of a removal out of the way of listings; new files under the same names are not affected. */
  hide(removals: readonly Removal[]): Promise<void>;
  /** Removes files of a trace. False if they cannot be reached from here: they stay recorded. Can be repeated. */
  remove(removal: Removal): Promise<boolean>;
}

/** Runs and traces that are removed together; of more, none is. */
const MAX_GROUP = 5_000;
/** Rows that one statement writes. */
const ROWS_PER_STATEMENT = 1_000;

/** Rows of what may be removed and what is being removed, in an SQL database. */
export class RetentionStore {
  constructor(
    private readonly db: StateDb,
    private readonly database: Pick<DatabaseTraits, 'hasRowLocks'>,
  ) {}

  /**
   * Lists runs that are over, of all accounts, the oldest end first.
   * @param what `artifacts` leaves out those whose artifacts were removed
   * @param after the last one of the page before
   */
  async listEnded(
    what: 'telemetry' | 'artifacts',
    beforeUnixMs: number,
    after: EndedRun | null,
    limit: number,
  ): Promise<readonly EndedRun[]> {
    let query = this.db
      .selectFrom('executions')
      .select(['id as runId', 'finished_unix_ms as finishedUnixMs'])
      // Spelt as the partial indexes spell it.
      .where(sql<SqlBool>`status >= 10`)
      .where('finished_unix_ms', '<=', beforeUnixMs);
    if (what === 'artifacts') query = query.where(sql<SqlBool>`artifacts_removed_unix_ms is null`);
    if (after !== null) {
      query = query.where(({ eb, or, and }) =>
        or([
          eb('finished_unix_ms', '>', after.finishedUnixMs),
          and([eb('finished_unix_ms', '=', after.finishedUnixMs), eb('id', '>', after.runId)]),
        ]),
      );
    }
    return await query.orderBy('finished_unix_ms').orderBy('id').limit(limit).execute();
  }

  /** Returns everything removed together with a run. `undefined` if the run is gone, or more belongs to it than is removed at a time. */
  groupOf(runId: number, destinations: readonly string[]): Promise<RunGroup | undefined> {
    return findGroup(this.db, runId, destinations);
  }

  /**
   * Removes all rows of runs and their traces, and records their files as removals.
   * @returns the removals; `undefined` if the group has changed, and nothing was done.
   */
  removeRuns(
    group: RunGroup,
    destinations: readonly string[],
    nowUnixMs: number,
  ): Promise<readonly Removal[] | undefined> {
    const [first] = group.runIds;
    if (first === undefined) return Promise.resolve(undefined);
    return changeState(this.db, async (transaction) => {
      if (this.database.hasRowLocks) await lockTraces(transaction, group.traceIds);
      const now = await findGroup(transaction, first, destinations);
      if (JSON.stringify(now) !== JSON.stringify(group)) return undefined;
      const objectKeys = await deleteTraces(transaction, group.traceIds);
      await deleteRunRows(transaction, group.runIds, group.traceIds);
      const removals: Removal[] = [
        ...group.traceIds.map((id) => ({ kind: 'trace' as const, id })),
        ...objectKeys.map((id) => ({ kind: 'object' as const, id })),
        ...group.runIds.map((id) => ({ kind: 'run' as const, id: String(id) })),
      ];
      await noteRemovals(transaction, removals, nowUnixMs);
      return removals;
    });
  }

  /** Records that a run's artifacts are removed. `undefined` if it is gone. */
  removeArtifacts(runId: number, nowUnixMs: number): Promise<Removal | undefined> {
    return changeState(this.db, async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('executions')
        .set({ artifacts_removed_unix_ms: nowUnixMs })
        .where('id', '=', runId)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return undefined;
      const removal: Removal = { kind: 'artifacts', id: String(runId) };
      await noteRemovals(transaction, [removal], nowUnixMs);
      return removal;
    });
  }

  /** Lists removals that are not over, oldest first. */
  async listRemovals(): Promise<readonly Removal[]> {
    return await this.db
      .selectFrom('removals')
      .select(['kind', 'id'])
      .orderBy('noted_unix_ms')
      .orderBy('kind')
      .orderBy('id')
      .execute();
  }

  /** Removals of traces are ones of folders that were moved away: one of the same name that comes now is another. @returns the removals as they are now */
  async noteMoved(removals: readonly Removal[]): Promise<readonly Removal[]> {
    const moved = removals.flatMap(({ kind, id }) => (kind === 'trace' ? [{ kind: 'moved' as const, id }] : []));
    if (moved.length === 0) return removals;
    const rest = removals.filter(({ kind }) => kind !== 'trace');
    await this.db.transaction().execute(async (transaction) => {
      for (const some of slices(moved, ROWS_PER_STATEMENT)) {
        const ids = some.map(({ id }) => id);
        // An earlier folder of the same trace may have a removal, too.
        await transaction.deleteFrom('removals').where('kind', '=', 'moved').where('id', 'in', ids).execute();
        await transaction
          .updateTable('removals')
          .set({ kind: 'moved' })
          .where('kind', '=', 'trace')
          .where('id', 'in', ids)
          .execute();
      }
    });
    return [...moved, ...rest];
  }

  /** The files of a removal are gone. */
  async endRemoval({ kind, id }: Removal): Promise<void> {
    await this.db.deleteFrom('removals').where('kind', '=', kind).where('id', '=', id).execute();
  }
}

async function findGroup(db: StateDb, runId: number, destinations: readonly string[]): Promise<RunGroup | undefined> {
  let runIds = [runId];
  let traceIds: string[] = [];
  for (;;) {
    const traces = await tracesOfRuns(db, runIds);
    const runs = [...new Set([...runIds, ...(await runsOfTraces(db, traces))])].toSorted((a, b) => a - b);
    if (runs.length + traces.length > MAX_GROUP) return undefined;
    const isWhole = runs.length === runIds.length && traces.length === traceIds.length;
    [runIds, traceIds] = [runs, traces];
    if (isWhole) break;
  }
  const runs = await db
    .selectFrom('executions')
    .select(['status', 'finished_unix_ms'])
    .where('id', 'in', runIds)
    .execute();
  if (runs.length !== runIds.length) return undefined;
  const traces =
    traceIds.length === 0
      ? []
      : await db.selectFrom('runs').select(['state', 'last_seen_unix_ms']).where('trace_id', 'in', traceIds).execute();
  return {
    runIds,
    traceIds: traceIds.flatMap((id) => parseTraceId(id) ?? []),
    endedUnixMs: Math.max(...runs.map((run) => run.finished_unix_ms), ...traces.map((one) => one.last_seen_unix_ms)),
    isLive:
      runs.some((run) => !isFinal(run.status)) ||
      traces.some(({ state }) => state !== 'finished') ||
      (await isAnyOpen(db, traceIds)),
    isPending: await isExportPending(db, traceIds, destinations),
  };
}

async function noteRemovals(
  transaction: Transaction<StateTables>,
  removals: readonly Removal[],
  nowUnixMs: number,
): Promise<void> {
  for (const some of slices(removals, ROWS_PER_STATEMENT)) {
    await transaction
      .insertInto('removals')
      .values(some.map((removal) => ({ ...removal, noted_unix_ms: nowUnixMs })))
      .onConflict((conflict) => conflict.columns(['kind', 'id']).doNothing())
      .execute();
  }
}
