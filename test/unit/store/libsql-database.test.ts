import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, SqliteDialect } from 'kysely';
import { expect, it } from 'vitest';
import { LibsqlDatabase } from '../../../src/store/libsql-database.js';

it('says that the disk is full where SQLite has rolled back by itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-full-'));
  const database = new LibsqlDatabase(join(folder, 'state.db'), 100);
  const db = new Kysely<{ kept: { text: string } }>({ dialect: new SqliteDialect({ database }) });
  try {
    await db.schema.createTable('kept').addColumn('text', 'text').execute();
    database.prepare('PRAGMA max_page_count = 4').all([]);
    const filling = db.transaction().execute(async (transaction) => {
      for (let count = 0; count < 100; count++) {
        await transaction
          .insertInto('kept')
          .values({ text: 'x'.repeat(4_000) })
          .execute();
      }
    });
    await expect(filling).rejects.toMatchObject({ name: 'StoreError', code: 'full' });
    // And the next transaction is one.
    await db
      .transaction()
      .execute(async (transaction) => transaction.insertInto('kept').values({ text: '' }).execute());
  } finally {
    await db.destroy();
    rmSync(folder, { recursive: true });
  }
});
