import { sql, type Transaction } from 'kysely';
import { slices } from '../../component/slices.js';
import { nextIds } from '../next-ids.js';
import type { CatalogRun } from '../run-catalog.js';
import { RUN_STATUS, type RunStatus } from '../run-status.js';
import { SqlRunCatalog } from '../sql-run-catalog.js';
import type { StateTables } from '../state-tables.js';
import { ALL_TOLD, dueEvents } from './due-events.js';
import { matchesRun, transitionOf } from './matches-run.js';
import type { Announcing, RunAnnouncer } from './run-announcer.js';
import type { MissingArtifactFacts, RunFacts } from './run-facts.js';
import { toSubscription } from './subscription-columns.js';
import type { WebhookEventType, WebhookSubscription } from './webhook-subscription.js';

/** Rows asked for, or written, by one statement. */
const ROWS_PER_STATEMENT = 500;
/** So long what is told of a run is kept back that may turn out to be a step of another one, in milliseconds. */
const DOUBTFUL_MS = 3_000;
/** The same where its telemetry names a step that nobody has told of yet: whoever runs the command is about to. */
const EXPECTED_MS = 10_000;

/** Missing artifacts that an event names. */
const MAX_MISSING_PATHS = 20;

/** A run that something is to be told of. */
interface News {
  readonly id: number;
  readonly accountId: number;
  readonly types: readonly WebhookEventType[];
  readonly told: number;
  /** Its first command that errored; `null` for none. */
  readonly error: RunError | null;
  /** Nobody told of its command: it may still turn out to be a step of another run. */
  readonly isOfNobody: boolean;
  /** Its telemetry names a step that is to be told of yet. */
  readonly isStepExpected: boolean;
}

/** The first command of a run that errored. */
interface RunError {
  /** Why it did; `null` where that is not known. */
  readonly message: string | null;
  /** When it ended; `null` where that is not known. */
  readonly erroredUnixMs: number | null;
}

/** Writes events into the outbox of an SQL database, one for each subscription that is for them. */
export class SqlRunAnnouncer implements RunAnnouncer {
  constructor(private readonly announcing: Announcing) {}

  async announce(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void> {
    for (const some of slices(runIds, ROWS_PER_STATEMENT)) {
      const news = await findNews(transaction, some);
      if (news.length === 0) continue;
      await noteTold(transaction, news);
      if (!this.announcing.isSilent) await this.write(transaction, news);
    }
  }

  private async write(transaction: Transaction<StateTables>, news: readonly News[]): Promise<void> {
    const accountIds = [...new Set(news.map(({ accountId }) => accountId))];
    const rows = await transaction
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('account_id', 'in', accountIds)
      .orderBy('created_unix_ms')
      .orderBy('id')
      .execute();
    if (rows.length === 0) return;
    const subscriptions = rows.map(toSubscription);
    const nowUnixMs = this.announcing.clock.nowUnixMs();
    const found: Omit<StateTables['webhook_events'], 'seq'>[] = [];
    const doubtfulMs = (await isStepRunning(transaction)) ? DOUBTFUL_MS : 0;
    for (const one of news) {
      const run = await new SqlRunCatalog(transaction).findRun(one.accountId, one.id);
      if (run === undefined) continue;
      const startedUnixMs = await firstStart(transaction, run);
      const waitMs = one.isStepExpected ? EXPECTED_MS : one.isOfNobody ? doubtfulMs : 0;
      const missing = run.missingArtifactCount === 0 ? undefined : await missingArtifacts(transaction, run);
      for (const type of one.types) {
        const facts = {
          ...factsOf({ ...run, startedUnixMs }, type, one.error, nowUnixMs),
          ...(type === 'job.run.completed' && missing !== undefined && { missingArtifacts: missing }),
        };
        for (const subscription of subscriptions) {
          if (!(await isFor(transaction, subscription, run, type, facts))) continue;
          found.push(this.eventOf(subscription, type, facts, nowUnixMs, waitMs));
        }
      }
    }
    if (found.length === 0) return;
    const first = await nextIds(transaction, 'webhook', found.length);
    const numbered = found.map((row, position) => ({ seq: first + position, ...row }));
    for (const some of slices(numbered, ROWS_PER_STATEMENT)) {
      await transaction.insertInto('webhook_events').values(some).execute();
    }
    this.announcing.onEvents();
  }

  private eventOf(
    { id, state }: WebhookSubscription,
    type: WebhookEventType,
    facts: RunFacts,
    nowUnixMs: number,
    waitMs: number,
  ): Omit<StateTables['webhook_events'], 'seq'> {
    return {
      ...{ id: `wev_${this.announcing.newKsuid(nowUnixMs)}`, subscription_id: id, event_type: type },
      ...{ job_id: facts.jobId, run_id: facts.runId, facts: JSON.stringify(facts), created_unix_ms: nowUnixMs },
      // Kept also where nothing is delivered, so that it can be replayed.
      state: state === 'active' ? 'pending' : 'skipped',
      ...{ is_tried: 0, is_forced: 0, round_count: 0, attempt_count: 0, http_status_code: null },
      ...{ due_unix_ms: nowUnixMs + waitMs, lease_until_unix_ms: 0, lease_holder: null },
    };
  }
}

async function findNews(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<readonly News[]> {
  const rows = await transaction
    .selectFrom('executions')
    .select(['id', 'account_id', 'status', 'told', 'step_count', 'cancelled_unix_ms'])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('execution_steps as step')
          .select('step.id')
          .whereRef('step.execution_id', '=', 'executions.id')
          .where('step.teller', '=', 'nobody'),
      ).as('is_of_nobody'),
    )
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('execution_steps as step')
          .innerJoin('step_traces as own', 'own.step_id', 'step.step_id')
          .innerJoin('step_traces as named', 'named.trace_id', 'own.trace_id')
          .leftJoin('execution_steps as told_of', 'told_of.step_id', 'named.step_id')
          .select('step.id')
          .whereRef('step.execution_id', '=', 'executions.id')
          .where('step.teller', '=', 'nobody')
          .where('told_of.id', 'is', null),
      ).as('is_step_expected'),
    )
    .where('id', 'in', runIds)
    .where('told', '<>', ALL_TOLD)
    .orderBy('id')
    .execute();
  const errors = await findErrors(
    transaction,
    rows.filter(({ told }) => (told & 2) === 0).map(({ id }) => id),
  );
  return rows.flatMap((row) => {
    const { types, told } = dueEvents({
      ...{ status: row.status, told: row.told, stepCount: row.step_count },
      isCancelled: row.cancelled_unix_ms !== null,
      hasError: errors.has(row.id),
    });
    if (told === row.told) return [];
    const doubts = { isOfNobody: Boolean(row.is_of_nobody), isStepExpected: Boolean(row.is_step_expected) };
    const error = errors.get(row.id) ?? null;
    return [{ id: row.id, accountId: row.account_id, types, told, error, ...doubts }];
  });
}

/** Runs of which a command is known to have errored, whether or not its files can be read yet. */
async function findErrors(
  transaction: Transaction<StateTables>,
  runIds: readonly number[],
): Promise<ReadonlyMap<number, RunError>> {
  if (runIds.length === 0) return new Map();
  const rows = await transaction
    .selectFrom('execution_steps as step')
    .leftJoin('invocations as command', (join) =>
      join.onRef('command.step_id', '=', 'step.step_id').on('command.verdict', 'in', ['error', 'lost']),
    )
    .select(['step.execution_id', 'step.status_message', 'step.ended_unix_ms'])
    .select(['command.status_message as command_message', 'command.ended_unix_ms as command_ended_unix_ms'])
    .where('step.execution_id', 'in', runIds)
    .where(sql<boolean>`(step.status = ${RUN_STATUS.error} or command.verdict = 'error')`)
    .orderBy('step.step_index', 'desc')
    .orderBy('command.ended_unix_ms', 'desc')
    .execute();
  return new Map(
    rows.map((row) => [
      row.execution_id,
      {
        message: row.status_message ?? row.command_message,
        erroredUnixMs: row.command_ended_unix_ms ?? row.ended_unix_ms,
      },
    ]),
  );
}

/** Whether somebody runs a command just now, of which telemetry without its mark may turn out to be. */
async function isStepRunning(transaction: Transaction<StateTables>): Promise<boolean> {
  const step = await transaction
    .selectFrom('execution_steps as step')
    .select('step.id')
    // Spelt as the partial index spells it.
    .where(sql<boolean>`step.ending is null`)
    .where('step.teller', '<>', 'nobody')
    .limit(1)
    .executeTakeFirst();
  return step !== undefined;
}

async function missingArtifacts(
  transaction: Transaction<StateTables>,
  { accountId, id, missingArtifactCount }: CatalogRun,
): Promise<MissingArtifactFacts> {
  const steps = await new SqlRunCatalog(transaction).stepsOf(accountId, [id]);
  const incomplete = steps.flatMap(({ artifacts }) => (artifacts?.state === 'incomplete' ? [artifacts] : []));
  return {
    count: missingArtifactCount,
    paths: incomplete.flatMap(({ missing }) => missing).slice(0, MAX_MISSING_PATHS),
    reason: incomplete[0]?.reason ?? '',
  };
}

async function noteTold(transaction: Transaction<StateTables>, news: readonly News[]): Promise<void> {
  for (const told of new Set(news.map((one) => one.told))) {
    const ids = news.filter((one) => one.told === told).map(({ id }) => id);
    await transaction.updateTable('executions').set({ told }).where('id', 'in', ids).execute();
  }
}

async function isFor(
  transaction: Transaction<StateTables>,
  subscription: WebhookSubscription,
  run: CatalogRun,
  type: WebhookEventType,
  facts: RunFacts,
): Promise<boolean> {
  if (subscription.accountId !== run.accountId || !matchesRun(subscription, type, facts)) return false;
  const { transitions } = subscription.filter;
  if (transitions.length === 0) return true;
  const transition = transitionOf(facts.status, await statusBefore(transaction, run));
  return transition !== null && transitions.includes(transition);
}

/** Status of the job's last run before that one, in its environment, that ended well or in error; `null` for none. */
async function statusBefore(transaction: Transaction<StateTables>, run: CatalogRun): Promise<RunStatus | null> {
  const before = await transaction
    .selectFrom('executions')
    .select('status')
    .where('account_id', '=', run.accountId)
    .where('job_id', '=', run.job.id)
    .where('environment_id', '=', run.environment.id)
    .where('id', '<', run.id)
    .where('status', 'in', [RUN_STATUS.success, RUN_STATUS.error])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return before?.status ?? null;
}

/**
 * When the first command of a run was started: what its telemetry says of that is not known yet when its start is told. Where
 * none was, when the run came to be.
 */
async function firstStart(transaction: Transaction<StateTables>, run: CatalogRun): Promise<number> {
  const { first } = await transaction
    .selectFrom('execution_steps')
    .select(({ fn }) => fn.min('started_unix_ms').as('first'))
    .where('execution_id', '=', run.id)
    .executeTakeFirstOrThrow();
  return first === null ? run.createdUnixMs : Number(first);
}

/** Times are those of the run, whenever the event is made: what is imported says the same as what was told of live. */
function factsOf(
  run: CatalogRun & { readonly startedUnixMs: number },
  type: WebhookEventType,
  error: RunError | null,
  nowUnixMs: number,
): RunFacts {
  const isErrored = type === 'job.run.errored';
  const ownStatus = isErrored ? RUN_STATUS.error : run.status;
  return {
    ...{ jobId: run.job.id, jobName: run.job.name, runId: run.id },
    ...{ environmentId: run.environment.id, environmentName: run.environment.name },
    ...{ projectId: run.project.id, projectName: run.project.name },
    engineVersion: run.engineVersion ?? '',
    status: type === 'job.run.started' ? RUN_STATUS.running : ownStatus,
    statusMessage:
      type === 'job.run.started' ? null : (run.statusMessage ?? (isErrored ? (error?.message ?? null) : null)),
    reason: run.reason,
    startedUnixMs: run.startedUnixMs,
    finishedUnixMs: type === 'job.run.completed' ? run.finishedUnixMs : null,
    erroredUnixMs: isErrored
      ? Math.min(error?.erroredUnixMs ?? nowUnixMs, run.finishedUnixMs ?? Number.POSITIVE_INFINITY)
      : null,
  };
}
