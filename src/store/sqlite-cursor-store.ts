import type { TraceId } from '../record/ids.js';
import type { CursorStore, ExportCursor, ForeignCursor, PendingRun } from './cursor-store.js';
import type { SqlDatabase } from './sql-database.js';
import { StoreError } from './store-error.js';

const FIND = `select traces_offset, logs_offset, finished_at_bytes from export_cursors
  where destination = ? and trace_id = ?`;
const SAVE = `insert into export_cursors (destination, trace_id, traces_offset, logs_offset, finished_at_bytes)
  values (?, ?, ?, ?, ?)
  on conflict (destination, trace_id) do update set
    traces_offset = excluded.traces_offset, logs_offset = excluded.logs_offset,
    finished_at_bytes = excluded.finished_at_bytes`;
/** Whether a destination with a cursor has something of the run to get. */
const IS_BEHIND = `(sent.finished_at_bytes is null or sent.finished_at_bytes <> run.log_bytes
  or sent.traces_offset < run.log_bytes or sent.logs_offset < run.log_bytes)`;
/** Two halves, so that each walks one index: runs seen since the registration, and older ones that have a cursor. */
const LIST_PENDING = `
  select run.trace_id as trace_id, run.first_seen_unix_ms as first_seen_unix_ms,
    run.last_seen_unix_ms as last_seen_unix_ms, run.log_bytes as log_bytes,
    coalesce(sent.traces_offset, 0) as traces_offset, coalesce(sent.logs_offset, 0) as logs_offset, sent.finished_at_bytes as finished_at_bytes
  from destinations as target
  join runs as run on run.first_seen_unix_ms >= target.since_unix_ms
  left join export_cursors as sent on sent.destination = target.name and sent.trace_id = run.trace_id
  where target.name = ? and (sent.trace_id is null or ${IS_BEHIND})
  union all
  select run.trace_id, run.first_seen_unix_ms, run.last_seen_unix_ms, run.log_bytes,
    sent.traces_offset, sent.logs_offset, sent.finished_at_bytes
  from destinations as target
  join export_cursors as sent on sent.destination = target.name
  join runs as run on run.trace_id = sent.trace_id
  where target.name = ? and run.first_seen_unix_ms < target.since_unix_ms and ${IS_BEHIND}
  order by first_seen_unix_ms, trace_id`;
const FIND_UNWANTED = `select run.trace_id from runs as run
  join destinations as target on target.name = ?
  left join export_cursors as sent on sent.destination = target.name and sent.trace_id = run.trace_id
  where run.trace_id = ? and run.first_seen_unix_ms < target.since_unix_ms and sent.trace_id is null`;
/** A cursor at the start is what remembers that an older run was open at the registration. */
const REMEMBER_OPEN = `insert into export_cursors (destination, trace_id, traces_offset, logs_offset, finished_at_bytes)
  select ?, trace_id, 0, 0, null from runs where state = 'open' and first_seen_unix_ms < ?`;

interface CursorRow {
  readonly traces_offset: number;
  readonly logs_offset: number;
  readonly finished_at_bytes: number | null;
}

interface PendingRow extends CursorRow {
  readonly trace_id: TraceId;
  readonly first_seen_unix_ms: number;
  readonly last_seen_unix_ms: number;
  readonly log_bytes: number;
}

/** Cursors in SQLite. */
export class SqliteCursorStore implements CursorStore {
  constructor(private readonly database: SqlDatabase) {}

  async find(destination: string, traceId: TraceId): Promise<ExportCursor | undefined> {
    const [row] = this.database.all<CursorRow>(FIND, [destination, traceId]);
    return row === undefined ? undefined : toCursor(destination, traceId, row);
  }

  async save(cursors: readonly ExportCursor[]): Promise<void> {
    const saveAll = () => {
      for (const { destination, traceId, tracesOffset, logsOffset, finishedAtBytes } of cursors) {
        this.database.run(SAVE, [destination, traceId, tracesOffset, logsOffset, finishedAtBytes]);
      }
    };
    if (cursors.length > 1) this.database.transaction(saveAll);
    else saveAll();
  }

  async listPending(destination: string): Promise<readonly PendingRun[]> {
    const rows = this.database.all<PendingRow>(LIST_PENDING, [destination, destination]);
    return rows.map((row) => ({
      traceId: row.trace_id,
      cursor: toCursor(destination, row.trace_id, row),
      logBytes: row.log_bytes,
      firstSeenUnixMs: row.first_seen_unix_ms,
      lastSeenUnixMs: row.last_seen_unix_ms,
    }));
  }

  async isWanted(destination: string, traceId: TraceId): Promise<boolean> {
    return this.database.all(FIND_UNWANTED, [destination, traceId]).length === 0;
  }

  async register(destination: string, nowUnixMs: number): Promise<number> {
    return this.database.transaction(() => {
      const [known] = this.database.all<{ since_unix_ms: number }>(
        'select since_unix_ms from destinations where name = ?',
        [destination],
      );
      if (known !== undefined) return known.since_unix_ms;
      this.database.run('insert into destinations (name, since_unix_ms) values (?, ?)', [destination, nowUnixMs]);
      this.database.run(REMEMBER_OPEN, [destination, nowUnixMs]);
      return nowUnixMs;
    });
  }

  async findForeign(destination: string): Promise<ForeignCursor | undefined> {
    const [row] = this.database.all<{ foreign_segment: string | null; foreign_offset: number | null }>(
      'select foreign_segment, foreign_offset from destinations where name = ?',
      [destination],
    );
    if (row === undefined || row.foreign_segment === null || row.foreign_offset === null) return undefined;
    return { segment: row.foreign_segment, offset: row.foreign_offset };
  }

  async saveForeign(destination: string, cursor: ForeignCursor): Promise<void> {
    const changedCount = this.database.run(
      'update destinations set foreign_segment = ?, foreign_offset = ? where name = ?',
      [cursor.segment, cursor.offset, destination],
    );
    if (changedCount === 0) {
      throw new StoreError('unavailable', `the destination ${destination} is not registered; register it first`);
    }
  }
}

function toCursor(destination: string, traceId: TraceId, row: CursorRow): ExportCursor {
  return {
    destination,
    traceId,
    tracesOffset: row.traces_offset,
    logsOffset: row.logs_offset,
    finishedAtBytes: row.finished_at_bytes,
  };
}
