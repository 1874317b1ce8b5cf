import type { Transaction } from 'kysely';
import type { AccountRow, AccountStore } from './account-store.js';
import { changeState } from './change-state.js';
import type { StateDb, StateTables } from './state-tables.js';

/** Rows of accounts in an SQL database. */
export class SqlAccountStore implements AccountStore {
  constructor(private readonly db: StateDb) {}

  find(id: number): Promise<AccountRow | undefined> {
    return this.db.selectFrom('accounts').select(['id', 'name']).where('id', '=', id).executeTakeFirst();
  }

  add({ name, id }: { name: string; id: number | null }, nowUnixMs: number): Promise<AccountRow | undefined> {
    return changeState(this.db, async (transaction) => {
      const account = { id: id ?? (await nextId(transaction)), name };
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto('accounts')
        .values({ ...account, created_unix_ms: nowUnixMs })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 0n ? undefined : account;
    });
  }

  list(): Promise<readonly AccountRow[]> {
    return this.db.selectFrom('accounts').select(['id', 'name']).orderBy('id').execute();
  }
}

/** Above every id of an account, and of accounts before a rebuild: their runs have projects. */
async function nextId(transaction: Transaction<StateTables>): Promise<number> {
  const accounts = transaction.selectFrom('accounts').select('id');
  const owners = transaction.selectFrom('projects').select('account_id as id');
  const { last } = await transaction
    .selectFrom(accounts.union(owners).as('known'))
    .select(({ fn }) => fn.max<number>('id').as('last'))
    .executeTakeFirstOrThrow();
  return last + 1;
}
