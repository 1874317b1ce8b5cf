import { truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SCHEMA_STEPS } from '../../../src/storage/schema.js';
import { openSqliteState } from '../../../src/storage/sqlite-state.js';
import type { State } from '../../../src/storage/state.js';
import { StoreError } from '../../../src/storage/store-error.js';
import { WebhookOutbox } from '../../../src/webhook/outbox.js';
import { stateContract } from '../../contract/state.contract.js';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-state-'));
  path = join(folder, 'state.db');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function withState(body: (state: State) => Promise<void>): Promise<void> {
  const state = await openSqliteState(path, undefined, new WebhookOutbox());
  try {
    await body(state);
  } finally {
    await state.close();
  }
}

stateContract(withState);

describe('the SQLite state', () => {
  it('keeps what was saved across a restart', async () => {
    await withState(async (state) => {
      await state.cursors.register('jaeger', 7);
    });
    await withState(async (state) => {
      expect(await state.cursors.register('jaeger', 9)).toBe(7);
    });
  });

  it('walks an index for the pending runs and for the unfinished ones', async () => {
    await withState(async () => {});
    const database = new Database(path);
    const plan = (sql: string) => JSON.stringify(database.prepare(`explain query plan ${sql}`).all());
    expect(
      plan(`select trace_id from runs where (state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes)
        order by first_seen_unix_ms`),
    ).toContain('runs_unfinished');
    expect(
      plan(`select run.trace_id from destinations as target
        join runs as run on run.first_seen_unix_ms >= target.since_unix_ms where target.name = 'jaeger'`),
    ).toContain('COVERING INDEX runs_by_first_seen');
    expect(plan(`select id from executions as run where run.state = 'open' and run.run_key is not null`)).toContain(
      'executions_open_by_key',
    );
    expect(plan('select step_id from execution_steps as step where step.ending is null')).toContain(
      'execution_steps_running',
    );
    expect(
      plan(`select event.* from webhook_events as event
        join webhook_subscriptions as subscription on subscription.id = event.subscription_id
        where subscription.account_id = 1 and event.run_id = 7 order by event.seq desc limit 25`),
    ).toMatch(/^(?!.*(?:SCAN|TEMP B-TREE)).*webhook_events_by_run/);
    for (const order of ['id', 'created_unix_ms', 'finished_unix_ms']) {
      const ofVersions = `account_id = 1 and engine_version in ('2.0.0', '2.0.1') and status in (10, 20)`;
      expect(plan(`select id from executions where ${ofVersions} order by ${order} desc limit 9`)).toMatch(
        /COVERING INDEX/,
      );
    }
    database.close();
  });

  it('refuses a database of a newer version, says so, and leaves it as it is', async () => {
    await withState(async () => {});
    const database = new Database(path);
    database.exec(`insert into kysely_migration values ('9999-from-the-future', '2030-01-01')`);
    database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
    database.close();
    const before = await readFile(path);
    const error = await openError();
    expect(error.code).toBe('newer');
    expect(error.message).toContain('9999-from-the-future');
    expect(error.message).toContain('--data-dir');
    expect(await readFile(path)).toEqual(before);
  });

  it('brings forward a folder of before, with the runs that wait in it', async () => {
    const before = Object.fromEntries(Object.entries(SCHEMA_STEPS).filter(([name]) => name < '0005'));
    expect(Object.keys(before)).toHaveLength(4);
    await (await openSqliteState(path, undefined, undefined, before)).close();
    const database = new Database(path);
    database.exec(
      `insert into job_runs (run_id, state, first_command, commands_digest) values (1001, 'queued', 1, 'digest')`,
    );
    database.close();
    await withState(async () => {});
    const after = new Database(path);
    expect(after.prepare('select first_command, steps_override from job_runs').all()).toMatchObject([
      { first_command: 1, steps_override: null },
    ]);
    after.close();
    await expect(openSqliteState(path, undefined, undefined, before)).rejects.toMatchObject({ code: 'newer' });
  });

  it('takes schema steps whole or not at all', async () => {
    const first = {
      '0001-first': { up: (db: Kysely<unknown>) => db.schema.createTable('one').addColumn('id', 'text').execute() },
    };
    const cutOff = async (db: Kysely<unknown>) => {
      await db.schema.createTable('two').addColumn('id', 'text').execute();
      throw new Error('cut off');
    };
    const whole = (db: Kysely<unknown>) => db.schema.createTable('two').addColumn('name', 'text').execute();
    await (await openSqliteState(path, 0, undefined, first)).close();
    await expect(openSqliteState(path, 0, undefined, { ...first, '0002-second': { up: cutOff } })).rejects.toThrow(
      'the schema step 0002-second failed; nothing was changed',
    );
    await (await openSqliteState(path, 0, undefined, { ...first, '0002-second': { up: whole } })).close();
    const database = new Database(path);
    expect(database.prepare(`select name from pragma_table_info('two')`).all()).toMatchObject([{ name: 'name' }]);
    database.close();
  });

  it('goes on after a clock that was set back', async () => {
    await withState(async () => {});
    const database = new Database(path);
    database.exec(`update kysely_migration set timestamp = '2999-01-01T00:00:00Z' where name like '0001%'`);
    database.close();
    await withState(async (state) => {
      expect(await state.rows.isEmpty()).toBe(true);
    });
  });

  it('says that a file is no database', async () => {
    writeFileSync(path, 'certainly no database '.repeat(1_000));
    const error = await openError();
    expect(error.code).toBe('corrupt');
    expect(error.message).toContain(path);
  });

  it('says that a file is damaged', async () => {
    await withState(async () => {});
    truncateSync(path, 4_096);
    expect((await openError()).code).toBe('corrupt');
  });

  it('says that the database is locked by another program', async () => {
    const other = new Database(path);
    other.exec('BEGIN EXCLUSIVE');
    const error = await openError();
    expect(error.code).toBe('locked');
    expect(error.message).toContain(path);
    other.close();
  });

  it('says that the folder is missing', async () => {
    path = join(folder, 'missing', 'state.db');
    const error = await openError();
    expect(error.code).toBe('unavailable');
    expect(error.message).toContain('check that its folder exists');
  });

  async function openError(): Promise<StoreError> {
    const state = openSqliteState(path, 0);
    const error = await state.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, not ${String(error)}`);
    return error;
  }
});
