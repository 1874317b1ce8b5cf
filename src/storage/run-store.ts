import { type Selectable, sql } from 'kysely';
import { slices } from '../core/lists.js';
import { camelCased, snakeCased } from '../core/snake-case.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { DatabaseTraits } from './database.js';
import { type Fence, onlyOwned } from './journal-store.js';
import type { StateDb, StateTables } from './state-tables.js';

/** What state.db remembers of a run, so that a start need not read all record logs. */
export interface RunRow {
  readonly traceId: TraceId;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
  readonly state: 'open' | 'finished';
  /** Length of the record log that the row speaks of. */
  readonly logBytes: number;
  /** The run model's summary as JSON text. */
  readonly summary: string;
  /** Parquet files are written for the log up to this length; `null` before the first. */
  readonly parquetBytes: number | null;
}

/** Rows of runs. */
export interface RunStore {
  find(traceId: TraceId): Promise<RunRow | undefined>;
  save(rows: readonly RunRow[]): Promise<void>;
  /** Lists runs that are open, or whose Parquet lags behind their log. */
  listUnfinished(): Promise<readonly RunRow[]>;
  /** Newest first. */
  list(limit: number): Promise<readonly RunRow[]>;
}

/** Rows written by one statement; SQLite allows 32,766 parameters in one, PostgreSQL 65,535. */
const ROWS_PER_STATEMENT = 500;

/** Rows of runs in an SQL database. */
export class SqlRunStore implements RunStore {
  /** @param fence the identity of this process, if several share the database */
  constructor(
    private readonly db: StateDb,
    private readonly fence?: Fence,
  ) {}

  async find(traceId: TraceId): Promise<RunRow | undefined> {
    const row = await this.db.selectFrom('runs').selectAll().where('trace_id', '=', traceId).executeTakeFirst();
    return row && toRunRow(row);
  }

  async save(all: readonly RunRow[]): Promise<void> {
    if (all.length === 0) return;
    await this.db.transaction().execute(async (transaction) => {
      const rows = await onlyOwned(transaction, all, this.fence);
      for (const some of slices(rows, ROWS_PER_STATEMENT)) {
        await transaction
          .insertInto('runs')
          .values(some.map((row) => ({ ...fromRunRow(row), first_seen_unix_ms: seen(row) })))
          .onConflict((conflict) =>
            conflict.column('trace_id').doUpdateSet((row) => ({
              last_seen_unix_ms: row.ref('excluded.last_seen_unix_ms'),
              state: row.ref('excluded.state'),
              log_bytes: row.ref('excluded.log_bytes'),
              summary: row.ref('excluded.summary'),
              parquet_bytes: row.ref('excluded.parquet_bytes'),
            })),
          )
          .execute();
      }
    });
  }

  async listUnfinished(): Promise<readonly RunRow[]> {
    const rows = await this.db
      .selectFrom('runs')
      .selectAll()
      // Spelt as the partial index spells it, or SQLite does not use it.
      .where(sql<boolean>`(state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes)`)
      .orderBy('first_seen_unix_ms')
      .execute();
    return rows.map(toRunRow);
  }

  async list(limit: number): Promise<readonly RunRow[]> {
    const rows = await this.db
      .selectFrom('runs')
      .selectAll()
      .orderBy('first_seen_unix_ms', 'desc')
      .orderBy('trace_id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(toRunRow);
  }
}

/** Returns when a run was first seen: one that comes after a destination's registration is never older than it, whatever the clock was set to since. */
function seen({ firstSeenUnixMs }: RunRow) {
  // Of two values SQLite has the larger as `max`, PostgreSQL as `greatest`.
  return sql<number>`(select case when count(*) > 0 and max(since_unix_ms) > ${firstSeenUnixMs} then max(since_unix_ms)
    else ${firstSeenUnixMs} end from destinations)`;
}

/** Returns the columns of a row, whatever else the object has. */
function fromRunRow({ traceId, firstSeenUnixMs, lastSeenUnixMs, state, logBytes, summary, parquetBytes }: RunRow) {
  return snakeCased({ traceId, firstSeenUnixMs, lastSeenUnixMs, state, logBytes, summary, parquetBytes });
}

/** Returns the data of a trace's row. */
export function toRunRow({ is_noted: _, ...row }: Selectable<StateTables['runs']>): RunRow {
  // Only `save` writes the column, from a TraceId.
  return { ...camelCased(row), traceId: row.trace_id as TraceId };
}

/** A trace's row, with what was measured of it. */
export interface MeasuredRun extends Pick<RunRow, 'state' | 'summary'> {
  /** What `save` stored for this summary; `null` if nothing was. */
  readonly content: Uint8Array | null;
}

/** What went wrong in a command of a trace, in lines, by which a run is found. */
export interface CommandErrors {
  /** Position of the command in its trace, from 1. */
  readonly index: number;
  readonly text: string;
  /** The same without literals. */
  readonly redactedText: string;
}

/** Measures in an SQL database. */
export class RunMeasuresStore {
  constructor(
    private readonly db: StateDb,
    private readonly database: Pick<DatabaseTraits, 'hasRowLocks'>,
  ) {}

  /** Returns whether anything is stored: then somebody has asked for measures before. */
  async isUsed(): Promise<boolean> {
    const row = await this.db.selectFrom('run_measures').select('trace_id').limit(1).executeTakeFirst();
    return row !== undefined;
  }

  async find(traceId: TraceId): Promise<MeasuredRun | undefined> {
    const row = await this.db
      .selectFrom('runs as run')
      .leftJoin('run_measures as measured', (join) =>
        join.onRef('measured.trace_id', '=', 'run.trace_id').onRef('measured.summary', '=', 'run.summary'),
      )
      .select(['run.state', 'run.summary', 'measured.content'])
      .where('run.trace_id', '=', traceId)
      .executeTakeFirst();
    // SQLite's driver gives an ArrayBuffer.
    return row && { ...row, content: row.content && new Uint8Array(row.content) };
  }

  /**
   * Replaces what is stored of a trace. Does nothing if its summary has changed meanwhile, or the trace was removed.
   * @param errors of its commands that did not end well
   */
  async save(traceId: TraceId, summary: string, content: Uint8Array, errors: readonly CommandErrors[]): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      const current = transaction
        .selectFrom('runs')
        .select('trace_id')
        .where('trace_id', '=', traceId)
        .where('summary', '=', summary);
      const row = await (this.database.hasRowLocks ? current.forShare() : current).executeTakeFirst();
      if (row === undefined) return;
      await transaction
        .insertInto('run_measures')
        .values({ trace_id: traceId, summary, content })
        .onConflict((conflict) => conflict.column('trace_id').doUpdateSet({ summary, content }))
        .execute();
      await transaction.deleteFrom('command_errors').where('trace_id', '=', traceId).execute();
      for (const some of slices(errors, ROWS_PER_STATEMENT)) {
        await transaction
          .insertInto('command_errors')
          .values(
            some.map(({ index, text, redactedText }) => ({
              ...{ trace_id: traceId, command_index: index },
              ...{ error_text: stored(text), redacted_text: stored(redactedText) },
            })),
          )
          .execute();
      }
    });
  }
}

/** PostgreSQL takes no NUL in a text. */
function stored(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}
