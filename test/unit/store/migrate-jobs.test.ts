import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, Migrator, SqliteDialect, sql } from 'kysely';
import { expect, it } from 'vitest';
import { LibsqlDatabase } from '../../../src/store/libsql-database.js';
import { createRunsAndCursors } from '../../../src/store/migration/0001-runs-and-cursors.js';
import { createExecutions } from '../../../src/store/migration/0002-executions.js';
import { createHostedRuns } from '../../../src/store/migration/0003-hosted-runs.js';
import { createAccountsAndTokens } from '../../../src/store/migration/0004-accounts-and-tokens.js';
import { openSqliteState } from '../../../src/store/open-sqlite-state.js';

const BEFORE = {
  '0001-runs-and-cursors': { up: createRunsAndCursors },
  '0002-executions': { up: createExecutions },
  '0003-hosted-runs': { up: createHostedRuns },
  '0004-accounts-and-tokens': { up: createAccountsAndTokens },
};

it('gives runs of before a job, an environment, a project and a status, and keeps their numbers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-migration-'));
  const path = join(folder, 'state.db');
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: new LibsqlDatabase(path, 100) }) });
  await new Migrator({ db, provider: { getMigrations: async () => BEFORE } }).migrateToLatest();
  await sql`insert into executions
    (id, run_key, job, environment, project, state, started_unix_ms, ended_unix_ms, step_count) values
    (1, null, 'adhoc', null, null, 'finished', 1000, 2000, 1),
    (2, 'night', 'nightly', 'prod', 'shop', 'finished', 3000, 4000, 2),
    (3, 'noon', 'nightly', 'staging', 'shop', 'open', 5000, null, 0)`.execute(db);
  await sql`insert into execution_steps
    (step_id, execution_id, step_index, command, teller, is_last, started_unix_ms, ended_unix_ms, ending, exit_code) values
    ('c', 2, 2, '["dbt","test"]', 'local', 1, 3500, 4000, 'exited', 1),
    ('b', 2, 1, '["dbt","run"]', 'local', 0, 3000, 3400, 'exited', 0),
    ('a', 1, 1, '["dbt"]', 'local', 1, 1000, 2000, 'exited', 0)`.execute(db);
  await sql`update last_ids set last_id = 3 where kind = 'execution'`.execute(db);
  await sql`insert into runs values ('0af7651916cd43dd8448eb211c80319c', 1, 2, 'finished', 7, '{}', 7)`.execute(db);
  await db.destroy();

  const state = await openSqliteState(path);
  const list = { isDescending: false, limit: 10, offset: 0 };
  const { items } = await state.catalog.listRuns(10_001, { ...list, orderBy: 'id' });
  expect(items).toMatchObject([
    { id: 1, status: 10, job: { name: 'adhoc' }, environment: { name: 'default' }, finishedUnixMs: 2000 },
    { id: 2, status: 20, job: { id: 4002 }, environment: { name: 'prod' }, project: { name: 'shop' } },
    { id: 3, status: 3, job: { id: 4002 }, environment: { name: 'staging' }, finishedUnixMs: null },
  ]);
  const jobs = await state.catalog.listJobs(10_001, { ...list, orderBy: 'id' });
  expect(jobs.items.map(({ id, name }) => [id, name])).toEqual([
    [4001, 'adhoc'],
    [4002, 'nightly'],
  ]);
  expect((await state.catalog.stepsOf(10_001, [2])).map(({ id, index }) => [id, index])).toEqual([
    [50_002, 1],
    [50_003, 2],
  ]);
  expect(await state.invocations.listUnnoted(10)).toHaveLength(1);
  const start = { stepId: 'd', runKey: null, job: 'new', environment: null, project: null, reason: null };
  const place = await state.executions.begin({ ...start, command: ['dbt'], startedUnixMs: 1, isLast: true }, 'local');
  expect(place.runId).toBe(1001);
  await state.close();
  rmSync(folder, { recursive: true, force: true });
});
