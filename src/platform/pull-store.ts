import type { Kysely } from 'kysely';
import { camelCased, type SnakeCased, snakeCased } from '../core/snake-case.js';
import type { State } from '../storage/state.js';

/** A run of a hosted platform, named so that it can be asked for. Ids are texts of digits. */
export interface HostedRunKey {
  /** The platform's base URL, without a slash at its end. */
  readonly platform: string;
  readonly accountId: string;
  readonly runId: string;
}

/** The runs that a watch covers. */
export interface WatchScope {
  readonly platform: string;
  readonly accountId: string;
  /** `null` for all jobs of the account. */
  readonly jobId: string | null;
}

/** The state of a hosted run in the queue. */
export interface HostedRunRow extends HostedRunKey {
  /** `failed`: it was given up; it waits again when it is added again. */
  readonly state: 'waiting' | 'done' | 'failed';
  /** When it was first added. */
  readonly notedUnixMs: number;
  /** While it waits: when it is to be asked for. */
  readonly dueUnixMs: number;
  /** Failed attempts in a row. */
  readonly attemptCount: number;
  /** Indices of the steps that need not be asked for again. */
  readonly doneSteps: readonly number[];
}

/** The tables of pulls, as Kysely's types. */
// A type: an interface has no index signature, which `withTables` asks for.
type PullTables = {
  readonly hosted_runs: SnakeCased<Omit<HostedRunRow, 'doneSteps'>> & {
    /** Numbers with commas between them. */
    readonly done_steps: string;
  };
  /** How far a watch has added runs. */
  readonly watch_cursors: {
    readonly platform: string;
    readonly account_id: string;
    /** Empty for all jobs. */
    readonly job_id: string;
    readonly created_unix_ms: number;
  };
};

/** Hosted runs in an SQL database. */
export class PullStore {
  private readonly db: Kysely<PullTables>;

  constructor(private readonly state: Pick<State, 'db' | 'sync'>) {
    this.db = state.db.withTables<PullTables>();
  }

  /**
   * Adds runs, which then wait; of known ones only those that failed wait again. Durable when it resolves.
   * @returns false, without adding any, if more than `maxWaiting` runs would wait.
   */
  async add(keys: readonly HostedRunKey[], nowUnixMs: number, maxWaiting: number): Promise<boolean> {
    const isAdded = await this.db.transaction().execute(async (db) => {
      const fresh: HostedRunRow[] = [];
      for (const key of keys) {
        const known = await findRow(db, key);
        if (known !== undefined && known.state !== 'failed') continue;
        const doneSteps = known === undefined ? [] : toRow(known).doneSteps;
        const { platform, accountId, runId } = key;
        fresh.push({
          ...{ platform, accountId, runId, state: 'waiting', notedUnixMs: nowUnixMs, dueUnixMs: nowUnixMs },
          ...{ attemptCount: 0, doneSteps },
        });
      }
      if (fresh.length === 0) return true;
      const { count } = await db
        .selectFrom('hosted_runs')
        .select((table) => table.fn.countAll<number>().as('count'))
        .where('state', '=', 'waiting')
        .executeTakeFirstOrThrow();
      if (Number(count) + fresh.length > maxWaiting) return false;
      for (const row of fresh) await writeRow(db, row);
      return true;
    });
    if (isAdded) await this.state.sync();
    return isAdded;
  }

  async find(key: HostedRunKey): Promise<HostedRunRow | undefined> {
    const row = await findRow(this.db, key);
    return row && toRow(row);
  }

  /** The run of a platform that waits and is due first. */
  async findNext(platform: string): Promise<HostedRunRow | undefined> {
    const row = await this.db
      .selectFrom('hosted_runs')
      .selectAll()
      .where('state', '=', 'waiting')
      .where('platform', '=', platform)
      .orderBy('due_unix_ms')
      .orderBy('noted_unix_ms')
      .limit(1)
      .executeTakeFirst();
    return row && toRow(row);
  }

  /** Writes rows, new or not. */
  async save(rows: readonly HostedRunRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.db.transaction().execute(async (db) => {
      for (const row of rows) await writeRow(db, row);
    });
  }

  /** Runs of a platform that wait. */
  async countWaiting(platform: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('hosted_runs')
      .select((table) => table.fn.countAll<number>().as('count'))
      .where('state', '=', 'waiting')
      .where('platform', '=', platform)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** The creation time up to which a watch has added all runs. */
  async findCursor({ platform, accountId, jobId }: WatchScope): Promise<number | undefined> {
    const row = await this.db
      .selectFrom('watch_cursors')
      .select('created_unix_ms')
      .where('platform', '=', platform)
      .where('account_id', '=', accountId)
      .where('job_id', '=', jobId ?? ALL_JOBS)
      .executeTakeFirst();
    return row?.created_unix_ms;
  }

  async saveCursor({ platform, accountId, jobId }: WatchScope, createdUnixMs: number): Promise<void> {
    await this.db
      .insertInto('watch_cursors')
      .values({ platform, account_id: accountId, job_id: jobId ?? ALL_JOBS, created_unix_ms: createdUnixMs })
      .onConflict((conflict) =>
        conflict
          .columns(['platform', 'account_id', 'job_id'])
          .doUpdateSet((row) => ({ created_unix_ms: row.ref('excluded.created_unix_ms') })),
      )
      .execute();
  }

  /** Deletes runs that are done or failed and were added before a time. */
  async prune(beforeUnixMs: number): Promise<void> {
    await this.db
      .deleteFrom('hosted_runs')
      .where('state', '<>', 'waiting')
      .where('noted_unix_ms', '<', beforeUnixMs)
      .execute();
  }
}

/** Represents "all jobs" in a key, where `null` is not possible. */
const ALL_JOBS = '';

function findRow(db: Kysely<PullTables>, { platform, accountId, runId }: HostedRunKey) {
  return db
    .selectFrom('hosted_runs')
    .selectAll()
    .where('platform', '=', platform)
    .where('account_id', '=', accountId)
    .where('run_id', '=', runId)
    .executeTakeFirst();
}

async function writeRow(db: Kysely<PullTables>, row: HostedRunRow): Promise<void> {
  const { platform, accountId, runId, state, notedUnixMs, dueUnixMs, attemptCount, doneSteps } = row;
  const numbers = snakeCased({ notedUnixMs, dueUnixMs, attemptCount });
  const changing = { state, ...numbers, done_steps: doneSteps.join(',') };
  await db
    .insertInto('hosted_runs')
    .values({ platform, account_id: accountId, run_id: runId, ...changing })
    .onConflict((conflict) => conflict.columns(['platform', 'account_id', 'run_id']).doUpdateSet(changing))
    .execute();
}

function toRow({ done_steps: steps, ...row }: PullTables['hosted_runs']): HostedRunRow {
  return { ...camelCased(row), doneSteps: steps === '' ? [] : steps.split(',').map(Number) };
}
