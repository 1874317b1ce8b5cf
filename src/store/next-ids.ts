import type { Transaction } from 'kysely';
import type { StateTables } from './state-tables.js';

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
