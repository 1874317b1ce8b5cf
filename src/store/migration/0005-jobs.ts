import { type Kysely, sql } from 'kysely';

/**
 * Projects, environments and jobs with numeric ids; runs belong to one of each, and have a status that lists filter and
 * sort by. Runs of before get theirs; what is known of their invocations is noted by the next start.
 */
export async function createJobs(db: Kysely<unknown>): Promise<void> {
  await createNamedThings(db);
  await createInvocations(db);
  await widenExecutions(db);
  await fillExecutions(db);
  await indexExecutions(db);
}

async function createNamedThings(db: Kysely<unknown>): Promise<void> {
  for (const table of ['projects', 'environments', 'jobs']) {
    const things = db.schema
      .createTable(table)
      .addColumn('id', 'bigint', (column) => column.primaryKey())
      .addColumn('account_id', 'bigint', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('created_unix_ms', 'bigint', (column) => column.notNull())
      .addColumn('updated_unix_ms', 'bigint', (column) => column.notNull())
      .addUniqueConstraint(`${table}_by_name`, ['account_id', 'name']);
    const isPlaced = table !== 'projects';
    const placed = isPlaced ? things.addColumn('project_id', 'bigint', (column) => column.notNull()) : things;
    const whole =
      table === 'jobs' ? placed.addColumn('environment_id', 'bigint', (column) => column.notNull()) : placed;
    await whole.execute();
  }
}

async function createInvocations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('invocations')
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('invocation_index', 'integer', (column) => column.notNull())
    .addColumn('step_id', 'text', (column) => column.notNull())
    .addColumn('command', 'text')
    .addColumn('verdict', 'text')
    .addColumn('status_message', 'text')
    .addColumn('started_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('ended_unix_ms', 'bigint', (column) => column.notNull())
    .addColumn('is_saved', 'integer', (column) => column.notNull())
    .addColumn('parquet_file', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('invocations_key', ['trace_id', 'invocation_index'])
    .execute();
  await db.schema.createIndex('invocations_by_step').on('invocations').column('step_id').execute();
  await db.schema
    .alterTable('runs')
    .addColumn('is_noted', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema
    .createIndex('runs_unnoted')
    .on('runs')
    .column('first_seen_unix_ms')
    .where(sql<boolean>`is_noted = 0`)
    .execute();
}

/** One column a statement: SQLite adds no more at a time. */
async function widenExecutions(db: Kysely<unknown>): Promise<void> {
  for (const name of ['account_id', 'project_id', 'environment_id', 'job_id', 'created_unix_ms', 'updated_unix_ms']) {
    await db.schema
      .alterTable('executions')
      .addColumn(name, 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await db.schema
    .alterTable('executions')
    .addColumn('status', 'integer', (column) => column.notNull().defaultTo(1))
    .execute();
  await db.schema
    .alterTable('executions')
    // The last moment that a date can be: a run that is not over sorts after all others.
    .addColumn('finished_unix_ms', 'bigint', (column) => column.notNull().defaultTo(sql`8640000000000000`))
    .execute();
  for (const name of ['seen_unix_ms', 'cancelled_unix_ms']) {
    await db.schema.alterTable('executions').addColumn(name, 'bigint').execute();
  }
  for (const name of ['status_message', 'engine_version', 'git_branch', 'git_sha']) {
    await db.schema.alterTable('executions').addColumn(name, 'text').execute();
  }
  for (const name of ['id', 'updated_unix_ms']) {
    await db.schema
      .alterTable('execution_steps')
      .addColumn(name, 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await db.schema
    .alterTable('execution_steps')
    .addColumn('status', 'integer', (column) => column.notNull().defaultTo(2))
    .execute();
  await db.schema.alterTable('execution_steps').addColumn('status_message', 'text').execute();
  await db.schema.alterTable('execution_steps').addColumn('seen_unix_ms', 'bigint').execute();
}

async function fillExecutions(db: Kysely<unknown>): Promise<void> {
  await sql`insert into projects (id, account_id, name, created_unix_ms, updated_unix_ms)
    select 2000 + row_number() over (order by first_id), 10001, name, created, created from (
      select coalesce(project, 'default') as name, min(id) as first_id, min(started_unix_ms) as created
      from executions group by coalesce(project, 'default')) as named`.execute(db);
  await sql`update executions set account_id = 10001, created_unix_ms = started_unix_ms,
    updated_unix_ms = coalesce(ended_unix_ms, started_unix_ms),
    project_id = (select id from projects where name = coalesce(executions.project, 'default'))`.execute(db);
  await sql`insert into environments (id, account_id, name, created_unix_ms, updated_unix_ms, project_id)
    select 3000 + row_number() over (order by first_id), 10001, name, created, created,
      (select project_id from executions where id = first_id) from (
      select coalesce(environment, 'default') as name, min(id) as first_id, min(started_unix_ms) as created
      from executions group by coalesce(environment, 'default')) as named`.execute(db);
  await sql`update executions set environment_id =
    (select id from environments where name = coalesce(executions.environment, 'default'))`.execute(db);
  await sql`insert into jobs (id, account_id, name, created_unix_ms, updated_unix_ms, project_id, environment_id)
    select 4000 + row_number() over (order by first_id), 10001, name, created, created,
      (select project_id from executions where id = first_id),
      (select environment_id from executions where id = first_id) from (
      select job as name, min(id) as first_id, min(started_unix_ms) as created
      from executions group by job) as named`.execute(db);
  await sql`update executions set job_id = (select id from jobs where name = executions.job)`.execute(db);
  await sql`update executions set status = 3 where state <> 'finished'`.execute(db);
  await sql`update execution_steps set id = numbered.id from (
      select step_id, 50000 + row_number() over (order by execution_id, step_index) as id from execution_steps
    ) as numbered where numbered.step_id = execution_steps.step_id`.execute(db);
  await sql`update execution_steps set status = case
      when ending is null then 3 when ending = 'exited' and exit_code = 0 then 10 else 20 end,
    updated_unix_ms = coalesce(ended_unix_ms, started_unix_ms)`.execute(db);
  await sql`update executions set finished_unix_ms = coalesce(ended_unix_ms, started_unix_ms), status = coalesce(
      (select max(status) from execution_steps where execution_id = executions.id), 10)
    where state = 'finished'`.execute(db);
  for (const [kind, table, base] of [
    ['project', 'projects', 2000],
    ['environment', 'environments', 3000],
    ['job', 'jobs', 4000],
    ['step', 'execution_steps', 50_000],
  ] as const) {
    await sql`insert into last_ids (kind, last_id)
      select ${sql.lit(kind)}, coalesce(max(id), ${sql.lit(base)}) from ${sql.table(table)}`.execute(db);
  }
  await sql`update last_ids set last_id = 1000 where kind = 'execution' and last_id < 1000`.execute(db);
}

async function indexExecutions(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex('execution_steps_by_id').on('execution_steps').column('id').unique().execute();
  // A run's name is its account's.
  await db.schema.dropIndex('executions_open_by_key').execute();
  await db.schema
    .createIndex('executions_open_by_key')
    .on('executions')
    .columns(['run_key', 'account_id'])
    .unique()
    .where(sql<boolean>`state = 'open' and run_key is not null`)
    .execute();
  await db.schema
    .createIndex('executions_unsettled')
    .on('executions')
    .column('id')
    .where(sql<boolean>`state = 'finished' and status < 10`)
    .execute();
  const sorted: Readonly<Record<string, readonly string[]>> = {
    id: [],
    created: ['created_unix_ms'],
    finished: ['finished_unix_ms'],
  };
  for (const [name, columns] of Object.entries(sorted)) {
    await db.schema
      .createIndex(`executions_by_${name}`)
      .on('executions')
      // Everything that a list filters by: it is counted, and its page found, without a look at a row.
      .columns(['account_id', ...columns, 'id', ...FILTERED.filter((column) => !columns.includes(column))])
      .execute();
  }
  for (const column of ['job_id', 'status']) {
    await db.schema
      .createIndex(`executions_by_${column}`)
      .on('executions')
      .columns(['account_id', column, 'id'])
      .execute();
  }
}

const FILTERED: readonly string[] = [
  'status',
  'job_id',
  'environment_id',
  'project_id',
  'created_unix_ms',
  'finished_unix_ms',
];
