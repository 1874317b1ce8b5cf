import type { RawBuilder, Transaction } from 'kysely';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import type { StateDb, StateTables } from './state-tables.js';

/**
 * A transaction that begins with a write, so that of several programs one waits for the other instead of failing half-way.
 * @param kind whose counter it holds from the beginning: others that hold the same wait for it, on every database.
 */
export function changeState<T>(
  db: StateDb,
  body: (transaction: Transaction<StateTables>) => Promise<T>,
  kind: StateTables['last_ids']['kind'] = 'execution',
): Promise<T> {
  return db.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('last_ids')
      .set(({ ref }) => ({ last_id: ref('last_id') }))
      .where('kind', '=', kind)
      .execute();
    return body(transaction);
  });
}

/** Takes numbers that were never given before. @returns the first of `count` in a row */
export async function nextIds(
  transaction: Transaction<StateTables>,
  kind: StateTables['last_ids']['kind'],
  count: number,
): Promise<number> {
  const { last_id } = await transaction
    .updateTable('last_ids')
    .set(({ eb }) => ({ last_id: eb('last_id', '+', count) }))
    .where('kind', '=', kind)
    .returning('last_id')
    .executeTakeFirstOrThrow();
  return last_id - count + 1;
}

/** Has new numbers of a kind be above this one. */
export async function raiseLastId(
  transaction: Transaction<StateTables>,
  kind: StateTables['last_ids']['kind'],
  last: number,
): Promise<void> {
  await transaction
    .updateTable('last_ids')
    .set({ last_id: last })
    .where('kind', '=', kind)
    .where('last_id', '<', last)
    .execute();
}

/** Returns the trace ids of rows. */
export function traceIdsOf(rows: readonly { readonly trace_id: string }[]): readonly TraceId[] {
  return rows.flatMap(({ trace_id }) => parseTraceId(trace_id) ?? []);
}

/** What databases differ in. */
export interface DatabaseTraits {
  /** Makes what was written last a power cut as well, where a commit alone does not. */
  readonly sync: () => Promise<void>;
  /** See `State.problem`. */
  readonly problem: () => string | null;
  /** The database's own clock, in milliseconds since 1970. */
  readonly nowUnixMs: RawBuilder<number>;
  /** Whether rows can be locked for a transaction's time; where not, one transaction writes at a time. */
  readonly hasRowLocks: boolean;
}
