import type { TraceId } from '../record/ids.js';
import type { RunRow, RunStore } from './run-store.js';
import type { SqlDatabase } from './sql-database.js';

/** A row of the table `runs`. Times are milliseconds, lengths bytes, ids lowercase hex. */
interface SqlRunRow {
  /** Only `save` writes the column. */
  readonly trace_id: TraceId;
  readonly first_seen_unix_ms: number;
  readonly last_seen_unix_ms: number;
  readonly state: 'open' | 'finished';
  readonly log_bytes: number;
  readonly summary: string;
  readonly parquet_bytes: number | null;
}

const COLUMNS = 'trace_id, first_seen_unix_ms, last_seen_unix_ms, state, log_bytes, summary, parquet_bytes';
const FIND = `select ${COLUMNS} from runs where trace_id = ?`;
const SAVE = `insert into runs (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)
  on conflict (trace_id) do update set
    first_seen_unix_ms = excluded.first_seen_unix_ms, last_seen_unix_ms = excluded.last_seen_unix_ms,
    state = excluded.state, log_bytes = excluded.log_bytes, summary = excluded.summary,
    parquet_bytes = excluded.parquet_bytes`;
/** The condition is spelt as the partial index spells it, or SQLite does not use it. */
const LIST_UNFINISHED = `select ${COLUMNS} from runs
  where (state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes) order by first_seen_unix_ms`;
const LIST = `select ${COLUMNS} from runs order by first_seen_unix_ms desc, trace_id desc limit ?`;

/** Rows of runs in SQLite. */
export class SqliteRunStore implements RunStore {
  constructor(private readonly database: SqlDatabase) {}

  async find(traceId: TraceId): Promise<RunRow | undefined> {
    return this.database.all<SqlRunRow>(FIND, [traceId]).map(toRunRow)[0];
  }

  async save(rows: readonly RunRow[]): Promise<void> {
    if (rows.length === 0) return;
    this.database.transaction(() => {
      for (const row of rows) {
        const { traceId, firstSeenUnixMs, lastSeenUnixMs, state, logBytes, summary, parquetBytes } = row;
        this.database.run(SAVE, [traceId, firstSeenUnixMs, lastSeenUnixMs, state, logBytes, summary, parquetBytes]);
      }
    });
  }

  async listUnfinished(): Promise<readonly RunRow[]> {
    return this.database.all<SqlRunRow>(LIST_UNFINISHED).map(toRunRow);
  }

  async list(limit: number): Promise<readonly RunRow[]> {
    return this.database.all<SqlRunRow>(LIST, [limit]).map(toRunRow);
  }
}

function toRunRow(row: SqlRunRow): RunRow {
  return {
    traceId: row.trace_id,
    firstSeenUnixMs: row.first_seen_unix_ms,
    lastSeenUnixMs: row.last_seen_unix_ms,
    state: row.state,
    logBytes: row.log_bytes,
    summary: row.summary,
    parquetBytes: row.parquet_bytes,
  };
}
