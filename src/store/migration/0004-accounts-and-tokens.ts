import { type Kysely, sql } from 'kysely';

/** Accounts, of which there is one from the beginning, and the tokens that speak for them. */
export async function createAccountsAndTokens(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('accounts')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
    .execute();
  // No steps of a schema read a clock: 0 says that the account has always been there.
  await sql`insert into accounts (id, name, created_unix_ms) values (10001, 'run-bridge', 0)`.execute(db);
  await sql`insert into last_ids (kind, last_id) values ('token', 1000)`.execute(db);
  await db.schema
    .createTable('tokens')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('account_id', 'bigint', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('user_name', 'text')
    .addColumn('permission', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('expires_unix_ms', 'bigint')
    .addColumn('revoked_unix_ms', 'bigint')
    .addColumn('used_unix_ms', 'bigint')
    .execute();
}
