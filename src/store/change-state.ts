import type { Transaction } from 'kysely';
import type { StateDb, StateTables } from './state-tables.js';

/** A transaction that begins with a write, so that of several programs one waits for the other instead of failing half-way. */
export function changeState<T>(db: StateDb, body: (transaction: Transaction<StateTables>) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('last_ids')
      .set(({ ref }) => ({ last_id: ref('last_id') }))
      .where('kind', '=', 'execution')
      .execute();
    return body(transaction);
  });
}
