import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, SqliteDialect } from 'kysely';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LibsqlDatabase } from '../../../src/storage/sqlite-state.js';
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

describe('a statement that stays prepared', () => {
  let folder: string;
  let database: LibsqlDatabase;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'run-bridge-prepared-'));
    database = new LibsqlDatabase(join(folder, 'state.db'), 100);
    database.prepare('create table kept (number integer primary key)').run([]);
  });
  afterEach(() => {
    database.close();
    rmSync(folder, { recursive: true });
  });

  it('is the same for the same text, up to a number of them', () => {
    const insert = database.prepare('insert into kept values (?)');
    expect(database.prepare('insert into kept values (?)')).toBe(insert);
    for (let number = 0; number < 200; number++) database.prepare(`select ${number}`).all([]);
    expect(database.prepare('insert into kept values (?)')).not.toBe(insert);
  });

  it('works again after it has failed', () => {
    const insert = (number: number) => database.prepare('insert into kept values (?)').run([number]);
    insert(1);
    expect(() => insert(1)).toThrow('UNIQUE');
    insert(2);
    expect(database.prepare('select number from kept').all([])).toEqual([{ number: 1 }, { number: 2 }]);
  });

  it('sees columns that were added', () => {
    database.prepare('insert into kept values (?)').run([1]);
    expect(database.prepare('select * from kept').all([])).toEqual([{ number: 1 }]);
    database.prepare('alter table kept add column text text').run([]);
    expect(database.prepare('select * from kept').all([])).toEqual([{ number: 1, text: null }]);
  });

  it('can be run while its rows are gone through', () => {
    for (const number of [1, 2, 3]) database.prepare('insert into kept values (?)').run([number]);
    const rows = database.prepare('select number from kept').iterate([]);
    expect(rows.next().value).toEqual({ number: 1 });
    expect(database.prepare('select number from kept').all([])).toHaveLength(3);
    expect([...rows]).toEqual([{ number: 2 }, { number: 3 }]);
  });

  it('holds nothing back from others once all rows are there', () => {
    const select = database.prepare('select number from kept');
    select.all([]);
    const other = new LibsqlDatabase(join(folder, 'state.db'), 100);
    other.prepare('insert into kept values (?)').run([7]);
    // All of the write-ahead log can be brought into the file: nobody reads from before.
    expect(other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all([])).toEqual([{ busy: 0, log: 0, checkpointed: 0 }]);
    expect(select.all([])).toEqual([{ number: 7 }]);
    other.close();
  });
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
