import type { Transaction } from 'kysely';
import { changeState } from './change-state.js';
import type { StateDb, StateTables } from './state-tables.js';

/** Whose runs, jobs and tokens something is. */
export interface AccountRow {
  readonly id: number;
  readonly name: string;
}

/** The account that always exists. Not 1: clients take that for an unset default. */
export const FIRST_ACCOUNT_ID = 10_001;

/** Rows of accounts. */
export interface AccountStore {
  find(id: number): Promise<AccountRow | undefined>;
  /**
   * Adds an account. @param id its earlier id, if the state was rebuilt; default: a new one
   * @returns `undefined` if an account with that id exists.
   */
  add(
    account: { readonly name: string; readonly id: number | null },
    nowUnixMs: number,
  ): Promise<AccountRow | undefined>;
  /** All of them, by id. */
  list(): Promise<readonly AccountRow[]>;
}

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
