import type { Transaction } from 'kysely';
import { slices } from '../../core/lists.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { DatabaseTraits } from '../database-traits.js';
import type { StateDb, StateTables } from '../state-tables.js';
import { StoreError } from '../store-error.js';
import type { JournalPart, JournalStore, NewPart } from './journal-store.js';

/** Rows written by one statement; a trace's has 7 columns, and SQLite allows 32,766 parameters in one. */
const ROWS_PER_STATEMENT = 500;

/** The journal's index in an SQL database. */
export class SqlJournalStore implements JournalStore {
  constructor(
    private readonly db: StateDb,
    private readonly database: Pick<DatabaseTraits, 'hasRowLocks' | 'nowUnixMs'>,
  ) {}

  /** Traces are locked in the order of their ids, so that two processes never deadlock; a row is locked until the commit, so numbers have no gaps. */
  async add(processId: string, objectKey: string, parts: readonly NewPart[]): Promise<void> {
    const counts = new Map<TraceId, number>();
    for (const { traceId } of parts) counts.set(traceId, (counts.get(traceId) ?? 0) + 1);
    const traces = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
    await this.db.transaction().execute(async (transaction) => {
      await this.checkLife(transaction, processId);
      const next = new Map<string, number>();
      for (const some of slices(traces, ROWS_PER_STATEMENT)) {
        const rows = await transaction
          .insertInto('cluster_traces')
          .values(
            some.map(([traceId, count]) => ({
              ...{ trace_id: traceId, owner: processId, generation: 1 },
              ...{ last_part: count, stored_part: 0, step_version: 0, born_unix_ms: this.database.nowUnixMs },
            })),
          )
          .onConflict((conflict) =>
            conflict.column('trace_id').doUpdateSet(({ ref, eb, fn }) => ({
              last_part: eb('cluster_traces.last_part', '+', ref('excluded.last_part')),
              owner: fn.coalesce('cluster_traces.owner', 'excluded.owner'),
              generation: eb
                .case()
                .when('cluster_traces.owner', 'is', null)
                .then(eb('cluster_traces.generation', '+', 1))
                .else(ref('cluster_traces.generation'))
                .end(),
            })),
          )
          .returning(['trace_id', 'last_part'])
          .execute();
        for (const { trace_id, last_part } of rows) {
          next.set(trace_id, last_part - (counts.get(trace_id as TraceId) ?? 0) + 1);
        }
      }
      await transaction.insertInto('cluster_objects').values({ object_key: objectKey }).execute();
      const rows = parts.map(({ traceId, fromByte, toByte }) => {
        const part = next.get(traceId) ?? 0;
        next.set(traceId, part + 1);
        return { trace_id: traceId, part, object_key: objectKey, from_byte: fromByte, to_byte: toByte };
      });
      for (const some of slices(rows, ROWS_PER_STATEMENT))
        await transaction
          .insertInto('cluster_parts')
          .values([...some])
          .execute();
    });
  }

  async addRelease(processId: string, traceId: TraceId, upToPart: number): Promise<boolean> {
    return await this.db.transaction().execute(async (transaction) => {
      const row = await transaction
        .updateTable('cluster_traces')
        .set(({ eb }) => ({ last_part: eb('last_part', '+', 1) }))
        .where('trace_id', '=', traceId)
        .where('owner', '=', processId)
        .returning('last_part')
        .executeTakeFirst();
      if (row === undefined) return false;
      await transaction
        .insertInto('cluster_parts')
        .values({ trace_id: traceId, part: row.last_part, object_key: null, from_byte: 0, to_byte: upToPart })
        .execute();
      return true;
    });
  }

  async list(traceId: TraceId, afterPart: number, limit: number): Promise<readonly JournalPart[]> {
    const rows = await this.db
      .selectFrom('cluster_parts')
      .selectAll()
      .where('trace_id', '=', traceId)
      .where('part', '>', afterPart)
      .orderBy('part')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      traceId,
      part: row.part,
      objectKey: row.object_key,
      fromByte: row.from_byte,
      toByte: row.to_byte,
    }));
  }

  async listUnneeded(limit: number): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('cluster_objects as object')
      .select('object.object_key')
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('cluster_parts as part')
              .select('part.part')
              .whereRef('part.object_key', '=', 'object.object_key'),
          ),
        ),
      )
      .limit(limit)
      .execute();
    return rows.map((row) => row.object_key);
  }

  async known(objectKeys: readonly string[]): Promise<ReadonlySet<string>> {
    if (objectKeys.length === 0) return new Set();
    const rows = await this.db
      .selectFrom('cluster_objects')
      .select('object_key')
      .where('object_key', 'in', objectKeys)
      .execute();
    return new Set(rows.map((row) => row.object_key));
  }

  async forget(objectKeys: readonly string[]): Promise<void> {
    if (objectKeys.length === 0) return;
    await this.db.deleteFrom('cluster_objects').where('object_key', 'in', objectKeys).execute();
  }

  /** A process that declares this one dead waits for this transaction. */
  private async checkLife(transaction: Transaction<StateTables>, processId: string): Promise<void> {
    const query = transaction
      .selectFrom('cluster_processes')
      .select('process_id')
      .where('process_id', '=', processId)
      .where('is_dead', '=', 0);
    const alive = await (this.database.hasRowLocks ? query.forShare() : query).executeTakeFirst();
    if (alive === undefined) throw new StoreError('locked', 'this process did not renew its lease in time');
  }
}
