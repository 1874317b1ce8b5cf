import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, SqliteDialect } from 'kysely';
import { afterAll, expect, it } from 'vitest';
import { LibsqlDatabase } from '../../../src/storage/libsql-database.js';
import { MountedFolder } from '../../tool/mounted-folder.js';

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

it('refuses the rest of a transaction during which it was closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-closed-'));
  const database = new LibsqlDatabase(join(folder, 'state.db'), 100);
  const db = new Kysely<{ kept: { text: string } }>({ dialect: new SqliteDialect({ database }) });
  try {
    await db.schema.createTable('kept').addColumn('text', 'text').execute();
    const closing = db.transaction().execute(async (transaction) => {
      database.close();
      await transaction.insertInto('kept').values({ text: '' }).execute();
    });
    await expect(closing).rejects.toMatchObject({ name: 'StoreError', code: 'unavailable' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const mounted = MountedFolder.mount(1);
afterAll(() => mounted?.remove());

it.skipIf(mounted === undefined)('closes on a full disk without a word, and nothing that was written is lost', () => {
  const path = join(mounted?.path ?? '', 'state.db');
  const texts = Array.from({ length: 50 }, (_, number) => `${number} ${'x'.repeat(4_000)}`);
  const database = new LibsqlDatabase(path, 100);
  database.prepare('create table kept (text text)').run([]);
  for (const text of texts) database.prepare('insert into kept values (?)').run([text]);
  const filler = join(mounted?.path ?? '', 'filler');
  expect(() => writeFileSync(filler, Buffer.alloc(2 ** 20))).toThrow('ENOSPC');
  database.close();
  rmSync(filler);
  const again = new LibsqlDatabase(path, 100);
  expect(again.prepare('select text from kept').all([])).toEqual(texts.map((text) => ({ text })));
  again.close();
});
