// Brings a state's schema forward by steps of its own, in a process that may be killed meanwhile: node bring-forward.mjs FOLDER WHERE [first]
// FOLDER holds the program's compiled sources, WHERE is the path of an SQLite file or a PostgreSQL URL; `first` takes the first step alone.
import { join } from 'node:path';

const [compiled, where, isFirst] = process.argv.slice(2);

/** As a step that changes a table in ways that SQLite knows no statement for: a new table, filled, in the old one's place. */
const STEPS = {
  '0000-things': {
    async up(db) {
      await db.schema
        .createTable('things')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('name', 'text', (column) => column.notNull())
        .execute();
    },
  },
  '0001-kinds': {
    async up(db) {
      await db.schema
        .createTable('new_things')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('kind', 'text', (column) => column.notNull())
        .execute();
      await db
        .insertInto('new_things')
        .columns(['id', 'name', 'kind'])
        .expression(db.selectFrom('things').select(({ val }) => ['id', 'name', val('known').as('kind')]))
        .execute();
      await db.schema.dropTable('things').execute();
      await db.schema.alterTable('new_things').renameTo('things').execute();
      for (const column of ['name', 'kind']) {
        await db.schema.createIndex(`things_by_${column}`).on('things').columns([column, 'id']).execute();
      }
    },
  },
  '0002-counts': {
    async up(db) {
      for (const name of ['first_count', 'second_count']) {
        await db.schema
          .alterTable('things')
          .addColumn(name, 'integer', (column) => column.notNull().defaultTo(0))
          .execute();
      }
      await db
        .updateTable('things')
        .set(({ ref }) => ({ first_count: ref('id'), second_count: ref('id') }))
        .execute();
    },
  },
};

const load = (module) => import(join(compiled, `${module}.js`));
const [{ openPostgresState }, { openSqliteState }, { systemClock }] = await Promise.all(
  ['storage/postgres-state', 'storage/sqlite-state', 'core/clock'].map(load),
);
const steps = isFirst === 'first' ? { '0000-things': STEPS['0000-things'] } : STEPS;
process.stdout.write('begin\n');
const state = where.startsWith('postgresql:')
  ? await openPostgresState(where, systemClock, undefined, undefined, undefined, steps)
  : await openSqliteState(where, undefined, undefined, steps);
process.stdout.write('done\n');
await state.close();
