import { randomBytes } from 'node:crypto';
import type { Transaction } from 'kysely';
import type { Clock, Timer } from '../core/clock.js';
import { quantile } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import { counted, lengthText } from '../core/text.js';
import { hasSameCommands } from '../run/measures/recovery.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { changeState } from '../storage/database.js';
import { commandLinesByRun, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS, type StateDb, type StateTables } from '../storage/state-tables.js';
import { commonFactsOf, NO_RUN, type Notice, type RunFacts } from './event.js';
import type { NoticeType, WebhookSubscription } from './subscription.js';
import {
  addEvents,
  ksuid,
  type NewEvent,
  SUBSCRIPTION_ROWS,
  type WebhookTables,
  type WebhookTransaction,
} from './tables.js';

/** Returns one line for people. */
export function noticeTitle(notice: Notice, { jobName, environmentName, runId }: RunFacts): string {
  const job = `${jobName} · ${environmentName}`;
  switch (notice.about) {
    case 'webhook': {
      const name = `webhook ${notice.webhookName}`;
      if (notice.percent >= 100) return `${name} was archived: ${notice.reason}`;
      return `${name} is failing, ${notice.percent} % of the way to being archived: ${notice.reason}`;
    }
    case 'overdue':
      return `${job} did not run: a run is expected every ${timeText(notice.expectedEverySeconds)}`;
    case 'slow': {
      const usual = lengthText(notice.usualSeconds * 1_000);
      return `${job} is slow: #${runId} has been running for ${lengthText(notice.runningSeconds * 1_000)}, and usually takes ${usual}`;
    }
  }
}

/** Returns a time between runs, to follow the word every: `24 hours`, `hour`, `7 days`. */
function timeText(seconds: number): string {
  const text = (unitSeconds: number, unit: string) =>
    seconds === unitSeconds ? unit : counted(seconds / unitSeconds, unit);
  if (seconds % 86_400 === 0 && seconds > 86_400) return text(86_400, 'day');
  if (seconds % 3_600 === 0) return text(3_600, 'hour');
  return seconds % 60 === 0 ? text(60, 'minute') : text(1, 'second');
}

/** Names and values for people. */
export function noticeFacts(notice: Notice, { runId }: RunFacts): readonly (readonly [string, string])[] {
  switch (notice.about) {
    case 'webhook':
      return [
        ['Webhook', notice.webhookId],
        ['Failures in a row', notice.failedCount.toLocaleString('en')],
        ...(notice.failingSince === null ? [] : [['Failing since', notice.failingSince] as const]),
        ['What happens then', notice.percent >= 100 ? 'nothing more is sent until it is set active' : 'it is archived'],
      ];
    case 'overdue':
      return [
        ['Last run', notice.lastStartedAt === null ? 'none' : `#${runId}`],
        ...(notice.lastStartedAt === null ? [] : [['Last started', notice.lastStartedAt] as const]),
      ];
    case 'slow':
      return [['Run', `#${runId}`]];
  }
}

/** Writes notices for subscriptions. Their order among other events is that in which they were made. */
function addNotices(
  transaction: WebhookTransaction,
  notices: readonly (NewEvent & { readonly eventType: NoticeType })[],
  nowUnixMs: number,
): Promise<void> {
  return addEvents(transaction, notices, nowUnixMs, (unixMs) => ksuid(unixMs, randomBytes));
}

/**
 * Notifies the subscription that is named for it that another one is failing, or was archived.
 * @param listener who is notified where a subscription of the first account names nobody; `off` for nobody
 */
export async function noticeArchiving(
  transaction: WebhookTransaction,
  failing: Pick<WebhookSubscription, 'id' | 'name' | 'accountId' | 'notifyOnArchive'>,
  standing: Pick<WebhookSubscription, 'failedCount' | 'failingSinceUnixMs'> & {
    readonly percent: number;
    readonly reason: string;
  },
  listener: string,
  nowUnixMs: number,
): Promise<void> {
  const named = failing.notifyOnArchive ?? (failing.accountId === FIRST_ACCOUNT_ID ? listener : 'off');
  if (named === 'off') return;
  const row = await transaction
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('account_id', '=', failing.accountId)
    .where(({ eb, and, or }) =>
      or([eb('id', '=', named), and([eb('kind', '=', 'email'), eb('shown_url', '=', named)])]),
    )
    .orderBy('created_unix_ms')
    .executeTakeFirst();
  // Nobody hears of itself, which gets nothing.
  if (row === undefined || row.id === failing.id) return;
  const { percent, reason, failedCount, failingSinceUnixMs } = standing;
  const facts: RunFacts = {
    ...NO_RUN,
    ...{ startedUnixMs: nowUnixMs, status: RUN_STATUS.error },
    notice: {
      ...{ about: 'webhook', webhookId: failing.id, webhookName: failing.name, percent, failedCount, reason },
      failingSince: failingSinceUnixMs === null ? null : new Date(failingSinceUnixMs).toISOString(),
    },
  };
  const eventType = percent >= 100 ? 'webhook.archived' : 'webhook.failing';
  await addNotices(transaction, [{ subscription: row, eventType, facts }], nowUnixMs);
}

/** Between two looks, in milliseconds. */
const LOOK_MS = 60_000;
/** A run is slow that takes so many times its usual length. */
const SLOW_FACTOR = 3;
/** The usual length is the median of so many successful runs, if there are as many as the second. */
const USUAL_OF = 20;
const USUAL_FROM = 3;
/** Runs of the job among which they are looked for. */
const MAX_LOOKED_AT = 100;
/** Nobody waits for less, in milliseconds: short runs vary. */
const MIN_SLOW_MS = 60_000;

/**
 * Notifies of jobs that should have run and did not, and of runs that take far longer than usual. Jobs are expected to run
 * by their declaration, which concerns all subscriptions to their errors, or by a subscription.
 */
export class ExpectationWatch {
  private timer: Timer | undefined;
  private isStopped = false;
  private readonly sinceUnixMs: number;

  constructor(
    private readonly deps: {
      readonly db: StateDb;
      /** In which time a run of a job of the first account is expected, in milliseconds, by the job's name. */
      readonly declared: ReadonlyMap<string, number>;
      readonly clock: Clock;
      readonly logger: Logger;
      /** Something was written. */
      readonly wake: () => void;
    },
  ) {
    this.sinceUnixMs = deps.clock.nowUnixMs();
  }

  start(): void {
    if (this.isStopped) return;
    this.timer = this.deps.clock.after(LOOK_MS, () => {
      this.look()
        .catch((error: unknown) => {
          this.deps.logger.error({ error: String(error) }, 'failed to look for runs that are overdue; retrying');
        })
        .finally(() => this.start());
    });
  }

  stop(): void {
    this.isStopped = true;
    this.timer?.cancel();
  }

  /** Looks once. @throws StoreError */
  async look(): Promise<void> {
    const { db, clock, wake } = this.deps;
    const rows = await db
      .withTables<WebhookTables>()
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('state', '=', 'active')
      .execute();
    let count = 0;
    for (const row of rows) {
      const subscription = SUBSCRIPTION_ROWS.toItem(row);
      if (!this.expectsAny(subscription)) continue;
      const nowUnixMs = clock.nowUnixMs();
      // Several processes look, and one after the other writes.
      count += await changeState(
        db,
        async (transaction) => {
          const found = await this.findUnexpected(transaction, subscription, nowUnixMs);
          await addNotices(transaction.withTables<WebhookTables>(), found, nowUnixMs);
          return found.length;
        },
        'webhook',
      );
    }
    if (count > 0) wake();
  }

  private expectsAny(subscription: WebhookSubscription): boolean {
    return subscription.expectMs !== null || (this.deps.declared.size > 0 && isNotifiedOfDeclared(subscription));
  }

  /** Returns in which time a run of a job is expected; `undefined` for none. */
  private expectedMs(subscription: WebhookSubscription, jobName: string): number | undefined {
    const declaredMs = isNotifiedOfDeclared(subscription) ? this.deps.declared.get(jobName) : undefined;
    return declaredMs ?? subscription.expectMs ?? undefined;
  }

  private async findUnexpected(
    transaction: Transaction<StateTables>,
    subscription: WebhookSubscription,
    nowUnixMs: number,
  ): Promise<readonly (NewEvent & { readonly eventType: NoticeType })[]> {
    const { filter, updatedUnixMs } = subscription;
    const runs = [
      ...(await latestRuns(transaction, subscription)),
      ...(await this.jobsWithoutRun(transaction, subscription)),
    ];
    const found: (NewEvent & { readonly eventType: NoticeType })[] = [];
    for (const { facts, isRunning } of runs) {
      const expectedMs = this.expectedMs(subscription, facts.jobName);
      if (expectedMs === undefined) continue;
      if (filter.environments.length > 0 && !filter.environments.includes(facts.environmentName)) continue;
      if (filter.projects.length > 0 && !filter.projects.includes(facts.projectName)) continue;
      // What was expected only now has as long from now on.
      const sinceUnixMs = Math.max(facts.startedUnixMs, updatedUnixMs);
      const notice = isRunning
        ? await slowNotice(transaction, subscription.accountId, facts, nowUnixMs)
        : overdueNotice(facts, expectedMs, nowUnixMs - sinceUnixMs);
      if (notice === undefined) continue;
      const eventType = notice.about === 'overdue' ? 'job.run.overdue' : 'job.run.slow';
      if (await isNotified(transaction, subscription, eventType, facts)) continue;
      found.push({ subscription, eventType, facts: { ...facts, notice } });
    }
    return found;
  }

  /** Lists declared jobs that never ran, as runs without an id that began when the watch did. */
  private async jobsWithoutRun(
    transaction: Transaction<StateTables>,
    subscription: WebhookSubscription,
  ): Promise<readonly LatestRun[]> {
    const names = [...this.deps.declared.keys()];
    if (names.length === 0 || !isNotifiedOfDeclared(subscription)) return [];
    const { accountId, jobIds } = subscription;
    const rows = await new RunCatalog(transaction).listJobsWithoutRun(accountId, names, jobIds);
    return rows.map((row) => ({
      isRunning: false,
      facts: {
        ...NO_RUN,
        ...{ jobId: row.id, jobName: row.name, environmentId: row.environmentId, environmentName: row.environment },
        ...{ projectId: row.projectId, projectName: row.project },
        ...{ startedUnixMs: this.sinceUnixMs, status: RUN_STATUS.error },
      },
    }));
  }
}

/** Declared jobs are the first account's, and concern who is notified of errors. */
function isNotifiedOfDeclared({ accountId, eventTypes }: WebhookSubscription): boolean {
  return accountId === FIRST_ACCOUNT_ID && eventTypes.includes('job.run.errored');
}

/** The latest run of a job in an environment. */
interface LatestRun {
  readonly facts: RunFacts;
  readonly isRunning: boolean;
}

async function latestRuns(
  transaction: Transaction<StateTables>,
  { accountId, jobIds }: WebhookSubscription,
): Promise<readonly LatestRun[]> {
  const latest = await new RunCatalog(transaction).listJobEnvironments(accountId, jobIds);
  const runs: LatestRun[] = [];
  for (const { jobId, environmentId } of latest) {
    // By its start: an imported run of last week is not the last one.
    const last = { jobId, environmentId, orderBy: 'created', isDescending: true, limit: 1, offset: 0 } as const;
    const { items } = await new RunCatalog(transaction).listRuns(accountId, last);
    const [run] = items;
    if (run === undefined) continue;
    const { status } = run;
    const startedUnixMs = run.dequeuedUnixMs ?? run.createdUnixMs;
    const facts = { ...NO_RUN, ...commonFactsOf(run), status, startedUnixMs };
    runs.push({ isRunning: status === RUN_STATUS.running, facts });
  }
  return runs;
}

function overdueNotice(facts: RunFacts, expectedMs: number, waitedMs: number): Notice | undefined {
  if (waitedMs <= expectedMs) return undefined;
  const lastStartedAt = facts.runId === NO_RUN.runId ? null : new Date(facts.startedUnixMs).toISOString();
  return { about: 'overdue', expectedEverySeconds: seconds(expectedMs), lastStartedAt };
}

async function slowNotice(
  transaction: Transaction<StateTables>,
  accountId: number,
  facts: RunFacts,
  nowUnixMs: number,
): Promise<Notice | undefined> {
  const runningMs = nowUnixMs - facts.startedUnixMs;
  if (runningMs < MIN_SLOW_MS) return undefined;
  const usualMs = await usualLengthMs(transaction, accountId, facts);
  if (usualMs === undefined || runningMs < SLOW_FACTOR * usualMs) return undefined;
  return { about: 'slow', usualSeconds: seconds(usualMs), runningSeconds: seconds(runningMs) };
}

/** Returns whether a subscription was notified of the same of a run; not known any more once the event is no longer kept. */
async function isNotified(
  transaction: Transaction<StateTables>,
  { id }: WebhookSubscription,
  type: NoticeType,
  { jobId, runId }: RunFacts,
): Promise<boolean> {
  const before = await transaction
    .withTables<WebhookTables>()
    .selectFrom('webhook_events')
    .select('id')
    .where('subscription_id', '=', id)
    .where('job_id', '=', jobId)
    .where('run_id', '=', runId)
    .where('event_type', '=', type)
    .executeTakeFirst();
  return before !== undefined;
}

/** Returns what successful runs of the same job, environment, project and commands took last. */
async function usualLengthMs(
  transaction: Transaction<StateTables>,
  accountId: number,
  { jobId, environmentId, projectId, runId }: RunFacts,
): Promise<number | undefined> {
  const rows = await new RunCatalog(transaction).lengthsOf({ jobId, environmentId, projectId }, MAX_LOOKED_AT);
  const ids = [runId, ...rows.map(({ id }) => id)];
  const commandLines = await commandLinesByRun(new RunCatalog(transaction), accountId, ids);
  const asked = (id: number) => ({ commandLines: commandLines(id) });
  const lengths = rows
    .filter(({ id }) => hasSameCommands(asked(id), asked(runId)))
    .slice(0, USUAL_OF)
    .map(({ lengthMs }) => lengthMs);
  return lengths.length < USUAL_FROM ? undefined : quantile(lengths, 0.5);
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}
