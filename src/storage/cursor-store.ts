import { CompiledQuery, type SqlBool, sql } from 'kysely';
import type { TraceId } from '../record/telemetry-record.js';
import { type Fence, isOwned, onlyOwned } from './journal-store.js';
import type { StateDb } from './state-tables.js';
import { StoreError } from './store-error.js';

/** How far one destination has got with one run. */
export interface ExportCursor {
  readonly destination: string;
  readonly traceId: TraceId;
  /** Every span anchored before this byte offset of the record log was sent (or refused for good). */
  readonly tracesOffset: number;
  /** The same for log records. */
  readonly logsOffset: number;
  /** Length of the record log when the run's last items (unfinished spans, synthetic root) were sent; `null` before. */
  readonly finishedAtBytes: number | null;
  /** When the run was last asked for again; its age counts from then. Absent when it never was. */
  readonly resentUnixMs?: number;
}

/** A run that a destination has not got to the end of. */
export interface PendingRun {
  readonly traceId: TraceId;
  /** At the start of the log where none was saved. */
  readonly cursor: ExportCursor;
  /** Length of the record log in the run's row; an open run's may be longer. 0 if several processes share the database: it is reported when the log is there. */
  readonly logBytes: number;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
}

/** A position in telemetry of other services: a segment file's name and a byte offset in it. */
export interface PassthroughCursor {
  readonly segment: string;
  readonly offset: number;
}

/** The data of a cursor's row. */
interface CursorRow {
  readonly traces_offset: number;
  readonly logs_offset: number;
  readonly finished_at_bytes: number | null;
  readonly resent_unix_ms: number | null;
}

interface PendingRow extends CursorRow {
  readonly trace_id: TraceId;
  readonly first_seen_unix_ms: number;
  readonly last_seen_unix_ms: number;
  readonly log_bytes: number;
}

/** What exports know of it; tests have others. */
export type CursorStore = Pick<SqlCursorStore, keyof SqlCursorStore>;

/** Cursors in an SQL database. */
export class SqlCursorStore {
  /** Texts of statements that save cursors, by how many. Putting one together takes longer than running it, which is done once a request. */
  private readonly texts = new Map<number, string>();

  /** @param fence the identity of this process, if several share the database */
  constructor(
    private readonly db: StateDb,
    private readonly fence?: Fence,
  ) {}

  async find(destination: string, traceId: TraceId): Promise<ExportCursor | undefined> {
    const row = await this.db
      .selectFrom('export_cursors')
      .selectAll()
      .where('destination', '=', destination)
      .where('trace_id', '=', traceId)
      .executeTakeFirst();
    return row === undefined ? undefined : toCursor(destination, traceId, row);
  }

  async save(all: readonly ExportCursor[]): Promise<void> {
    if (all.length === 0) return;
    const { fence } = this;
    if (fence === undefined) {
      await this.write(this.db, all);
      return;
    }
    await this.db.transaction().execute(async (transaction) => {
      const cursors = await onlyOwned(transaction, all, fence);
      if (cursors.length > 0) await this.write(transaction, cursors);
    });
  }

  private async write(db: StateDb, cursors: readonly ExportCursor[]): Promise<void> {
    const count = cursors.length;
    let text = this.texts.get(count);
    if (text === undefined) {
      text = insertOf(db, cursors).sql;
      if (count <= MAX_CACHED_TEXTS) this.texts.set(count, text);
    }
    await db.executeQuery(CompiledQuery.raw(text, cursors.flatMap(valuesOf)));
  }

  /** Lists runs that the destination is to get (see `isWanted`) and has not got to the end of, oldest first. Two halves, so that each walks one index: runs seen since the registration, and older ones that have a cursor. */
  async listPending(destination: string): Promise<readonly PendingRun[]> {
    const isMine = this.fence === undefined ? sql`1 = 1` : isOwned(this.fence.processId, 'run.trace_id');
    const { rows } = await sql<PendingRow>`
      select run.trace_id as trace_id, run.first_seen_unix_ms as first_seen_unix_ms,
        run.last_seen_unix_ms as last_seen_unix_ms, run.log_bytes as log_bytes,
        coalesce(sent.traces_offset, 0) as traces_offset, coalesce(sent.logs_offset, 0) as logs_offset,
        sent.finished_at_bytes as finished_at_bytes, sent.resent_unix_ms as resent_unix_ms
      from destinations as target
      join runs as run on run.first_seen_unix_ms >= target.since_unix_ms
      left join export_cursors as sent on sent.destination = target.name and sent.trace_id = run.trace_id
      where target.name = ${destination} and (sent.trace_id is null or ${IS_BEHIND}) and ${isMine}
      union all
      select run.trace_id, run.first_seen_unix_ms, run.last_seen_unix_ms, run.log_bytes,
        sent.traces_offset, sent.logs_offset, sent.finished_at_bytes, sent.resent_unix_ms
      from destinations as target
      join export_cursors as sent on sent.destination = target.name
      join runs as run on run.trace_id = sent.trace_id
      where target.name = ${destination} and run.first_seen_unix_ms < target.since_unix_ms and ${IS_BEHIND} and ${isMine}
      order by first_seen_unix_ms, trace_id`.execute(this.db);
    return rows.map((row) => ({
      traceId: row.trace_id,
      cursor: toCursor(destination, row.trace_id, row),
      // A process that has just claimed a trace has not fetched its log yet, and reports when it has.
      logBytes: this.fence === undefined ? row.log_bytes : 0,
      firstSeenUnixMs: row.first_seen_unix_ms,
      lastSeenUnixMs: row.last_seen_unix_ms,
    }));
  }

  /**
   * Returns whether a destination gets a run: the run was first seen at or after the destination's registration, was open
   * then, or is not known yet.
   */
  async isWanted(destination: string, traceId: TraceId): Promise<boolean> {
    const { rows } = await sql<{ trace_id: TraceId }>`
      select run.trace_id as trace_id
      from runs as run
      join destinations as target on target.name = ${destination}
      left join export_cursors as sent on sent.destination = target.name and sent.trace_id = run.trace_id
      where run.trace_id = ${traceId} and run.first_seen_unix_ms < target.since_unix_ms and sent.trace_id is null
    `.execute(this.db);
    return rows.length === 0;
  }

  /**
   * Registers a destination; the first time, it is to get the runs that are open now and those first seen from
   * `nowUnixMs` on. Returns the time since which it gets runs.
   */
  async register(destination: string, nowUnixMs: number): Promise<number> {
    return this.db.transaction().execute(async (transaction) => {
      const { numInsertedOrUpdatedRows: count } = await transaction
        .insertInto('destinations')
        .values({ name: destination, since_unix_ms: nowUnixMs, foreign_segment: null, foreign_offset: null })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .executeTakeFirstOrThrow();
      if (count === 0n) {
        const known = await transaction
          .selectFrom('destinations')
          .select('since_unix_ms')
          .where('name', '=', destination)
          .executeTakeFirstOrThrow();
        return known.since_unix_ms;
      }
      // A cursor at the start records that an older run was open at the registration.
      await sql`
        insert into export_cursors (destination, trace_id, traces_offset, logs_offset, finished_at_bytes)
        select ${destination}, trace_id, 0, 0, null from runs
        where state = 'open' and first_seen_unix_ms < ${nowUnixMs}`.execute(transaction);
      return nowUnixMs;
    });
  }

  async findPassthrough(destination: string): Promise<PassthroughCursor | undefined> {
    const row = await this.db
      .selectFrom('destinations')
      .select(['foreign_segment', 'foreign_offset'])
      .where('name', '=', this.passthroughName(destination))
      .executeTakeFirst();
    if (row === undefined || row.foreign_segment === null || row.foreign_offset === null) return undefined;
    return { segment: row.foreign_segment, offset: row.foreign_offset };
  }

  /** @throws StoreError when the destination was never registered. */
  async savePassthrough(destination: string, cursor: PassthroughCursor): Promise<void> {
    const position = { foreign_segment: cursor.segment, foreign_offset: cursor.offset };
    if (this.fence !== undefined) {
      await this.db
        .insertInto('destinations')
        .values({ name: this.passthroughName(destination), since_unix_ms: 0, ...position })
        .onConflict((conflict) => conflict.column('name').doUpdateSet(position))
        .execute();
      return;
    }
    const result = await this.db
      .updateTable('destinations')
      .set(position)
      .where('name', '=', destination)
      .executeTakeFirst();
    if (result.numUpdatedRows === 0n) {
      throw new StoreError('unavailable', `the destination ${destination} is not registered; register it first`);
    }
  }

  /** Returns the name under which a destination's position is stored: each of several processes has telemetry of other services. Names of destinations have no slash. */
  private passthroughName(destination: string): string {
    return this.fence === undefined ? destination : `${destination}/${this.fence.folderId}`;
  }
}

/** The text of a statement that saves up to so many cursors is cached. */
const MAX_CACHED_TEXTS = 16;

/** Returns the statement that saves some cursors. */
function insertOf(db: StateDb, cursors: readonly ExportCursor[]): CompiledQuery {
  return db
    .insertInto('export_cursors')
    .values(
      cursors.map((cursor) => ({
        destination: cursor.destination,
        trace_id: cursor.traceId,
        traces_offset: cursor.tracesOffset,
        logs_offset: cursor.logsOffset,
        finished_at_bytes: cursor.finishedAtBytes,
        resent_unix_ms: cursor.resentUnixMs ?? null,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['destination', 'trace_id']).doUpdateSet((row) => ({
        traces_offset: row.ref('excluded.traces_offset'),
        logs_offset: row.ref('excluded.logs_offset'),
        finished_at_bytes: row.ref('excluded.finished_at_bytes'),
        resent_unix_ms: row.ref('excluded.resent_unix_ms'),
      })),
    )
    .compile();
}

/** Returns what `insertOf` puts into its statement, in its order. */
function valuesOf(cursor: ExportCursor): readonly unknown[] {
  const { destination, traceId, tracesOffset, logsOffset, finishedAtBytes, resentUnixMs = null } = cursor;
  return [destination, traceId, tracesOffset, logsOffset, finishedAtBytes, resentUnixMs];
}

/** Returns whether one of the destinations has not got all of the traces, and has not given them up. */
export async function isExportPending(
  db: StateDb,
  traceIds: readonly string[],
  destinations: readonly string[],
): Promise<boolean> {
  if (traceIds.length === 0 || destinations.length === 0) return false;
  const found = await db
    .selectFrom('runs as run')
    .innerJoin('destinations as target', (join) => join.on('target.name', 'in', destinations))
    .leftJoin('export_cursors as sent', (join) =>
      join.onRef('sent.destination', '=', 'target.name').onRef('sent.trace_id', '=', 'run.trace_id'),
    )
    .select('run.trace_id')
    .where('run.trace_id', 'in', traceIds)
    .where(
      sql<SqlBool>`(case when sent.trace_id is null then run.first_seen_unix_ms >= target.since_unix_ms else ${IS_BEHIND} end)`,
    )
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Whether a destination with a cursor (`sent`) has something of the trace (`run`) to get. */
const IS_BEHIND = sql<boolean>`(
  sent.finished_at_bytes is null or sent.finished_at_bytes <> run.log_bytes
  or sent.traces_offset < run.log_bytes or sent.logs_offset < run.log_bytes)`;

function toCursor(destination: string, traceId: TraceId, row: CursorRow): ExportCursor {
  return {
    destination,
    traceId,
    tracesOffset: row.traces_offset,
    logsOffset: row.logs_offset,
    finishedAtBytes: row.finished_at_bytes,
    ...(row.resent_unix_ms === null ? {} : { resentUnixMs: row.resent_unix_ms }),
  };
}
