import type { AccountRow, AccountStore } from './account-store.js';
import type { StateDb } from './state-tables.js';

/** Rows of accounts in an SQL database. */
export class SqlAccountStore implements AccountStore {
  constructor(private readonly db: StateDb) {}

  find(id: number): Promise<AccountRow | undefined> {
    return this.db.selectFrom('accounts').select(['id', 'name']).where('id', '=', id).executeTakeFirst();
  }

  list(): Promise<readonly AccountRow[]> {
    return this.db.selectFrom('accounts').select(['id', 'name']).orderBy('id').execute();
  }
}
