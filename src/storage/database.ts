import { type Expression, type RawBuilder, type SqlBool, sql, type Transaction } from 'kysely';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import type { StateDb, StateTables } from './state-tables.js';

/**
 * Runs a transaction that begins with a write, so that of several programs one waits for the other instead of failing half-way.
 * @param kind whose counter it locks from the beginning: others that lock the same wait for it, on every database.
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

/** A part of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** On all pages. */
  readonly totalCount: number;
}

/** Ids asked for by one statement. */
export const IDS_PER_STATEMENT = 500;

/** Returns the condition for a value of a query; none where the query does not name it. */
export function given<Value>(
  value: Value | undefined,
  condition: (value: Value) => Expression<SqlBool>,
): readonly Expression<SqlBool>[] {
  return value === undefined ? [] : [condition(value)];
}

/** Returns the condition that a column has one of these values; an empty list matches nothing, and is not valid SQL. */
export function among(
  column: string | RawBuilder<unknown>,
  values: readonly unknown[] | undefined,
): readonly Expression<SqlBool>[] {
  const subject = typeof column === 'string' ? sql.ref(column) : column;
  return given(values, (some) =>
    some.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`${subject} in (${sql.join(some)})`,
  );
}

/** Returns the condition that a column contains a text, ignoring case. */
export function containsText(column: string, text: string): Expression<SqlBool> {
  const pattern = `%${text.toLowerCase().replaceAll(/[!%_]/g, (character) => `!${character}`)}%`;
  return sql<boolean>`lower(${sql.ref(column)}) like ${pattern} escape '!'`;
}

/** What databases differ in. */
export interface DatabaseTraits {
  /** Makes what was written last a power cut as well, where a commit alone does not. */
  readonly sync: () => Promise<void>;
  /** See `State.problem`. */
  readonly problem: () => string | null;
  /** The clock of the database, in milliseconds since 1970. */
  readonly nowUnixMs: RawBuilder<number>;
  /** Whether rows can be locked for a transaction's time; where not, one transaction writes at a time. */
  readonly hasRowLocks: boolean;
}
