import { randomBytes } from 'node:crypto';
import type { Transaction } from 'kysely';
import { formatDuration } from '../config/duration.js';
import type { Clock, Timer } from '../core/clock.js';
import { ksuid } from '../core/ksuid.js';
import type { Logger } from '../core/logger.js';
import { lengthText } from '../core/text.js';
import { changeState, nextIds } from '../storage/change-state.js';
import { SqlRunCatalog } from '../storage/run-catalog.js';

import { RUN_STATUS, type StateDb, type StateTables } from '../storage/state-tables.js';
import type { Notice, RunFacts } from './event.js';
import type { NoticeType, WebhookSubscription } from './subscription.js';
import { toSubscription, type WebhookTables, type WebhookTransaction } from './tables.js';

/** One line for people. */
export function noticeTitle(notice: Notice, { jobName, environmentName, runId }: RunFacts): string {
  const job = `${jobName} · ${environmentName}`;
  switch (notice.about) {
    case 'webhook': {
      const name = `webhook ${notice.webhookName}`;
      if (notice.percent >= 100) return `${name} was archived: ${notice.reason}`;
      return `${name} is failing, ${notice.percent} % of the way to being archived: ${notice.reason}`;
    }
    case 'overdue':
      return `${job} did not run: a run is expected every ${formatDuration(notice.expectedEverySeconds * 1_000)}`;
    case 'slow': {
      const usual = lengthText(notice.usualSeconds * 1_000);
      return `${job} runs long: #${runId} has run for ${lengthText(notice.runningSeconds * 1_000)}, and usually takes ${usual}`;
    }
  }
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
        ['Last run', `#${runId}`],
        ['Last started', notice.lastStartedAt],
      ];
    case 'slow':
      return [['Run', `#${runId}`]];
  }
}

type EventRow = Omit<WebhookTables['webhook_events'], 'seq'>;

/** Writes notices for subscriptions. Their order among other events is that in which they were made. */
async function writeNotices(
  transaction: WebhookTransaction,
  notices: readonly {
    readonly to: Pick<WebhookSubscription, 'id' | 'state'>;
    readonly type: NoticeType;
    readonly facts: RunFacts;
  }[],
  nowUnixMs: number,
): Promise<void> {
  if (notices.length === 0) return;
  const first = await nextIds(transaction, 'webhook', notices.length);
  const rows = notices.map(
    ({ to, type, facts }): EventRow => ({
      ...{ id: `wev_${ksuid(nowUnixMs, randomBytes)}`, subscription_id: to.id, event_type: type },
      ...{ job_id: facts.jobId, run_id: facts.runId, facts: JSON.stringify(facts), created_unix_ms: nowUnixMs },
      state: to.state === 'active' ? 'pending' : 'skipped',
      ...{ is_tried: 0, is_forced: 0, round_count: 0, attempt_count: 0, http_status_code: null, filtered_reason: null },
      ...{ due_unix_ms: nowUnixMs, lease_until_unix_ms: 0, lease_holder: null },
    }),
  );
  const numbered = rows.map((row, position) => ({ seq: first + position, ...row }));
  await transaction.insertInto('webhook_events').values(numbered).execute();
}

/** Tells who wants to hear it that a subscription is failing, or was archived. */
export async function noticeArchiving(
  transaction: WebhookTransaction,
  failing: Pick<WebhookSubscription, 'id' | 'name' | 'accountId' | 'notifyOnArchive'>,
  standing: Pick<WebhookSubscription, 'failedCount' | 'failingSinceUnixMs'> & {
    readonly percent: number;
    readonly reason: string;
  },
  nowUnixMs: number,
): Promise<void> {
  if (failing.notifyOnArchive === null) return;
  const row = await transaction
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('account_id', '=', failing.accountId)
    .where('id', '=', failing.notifyOnArchive)
    .executeTakeFirst();
  if (row === undefined) return;
  const { percent, reason, failedCount, failingSinceUnixMs } = standing;
  const facts: RunFacts = {
    ...NO_RUN,
    ...{ startedUnixMs: nowUnixMs, status: RUN_STATUS.error },
    notice: {
      ...{ about: 'webhook', webhookId: failing.id, webhookName: failing.name, percent, failedCount, reason },
      failingSince: failingSinceUnixMs === null ? null : new Date(failingSinceUnixMs).toISOString(),
    },
  };
  const type = percent >= 100 ? 'webhook.archived' : 'webhook.failing';
  await writeNotices(transaction, [{ to: toSubscription(row), type, facts }], nowUnixMs);
}

const NO_RUN = {
  ...{ jobId: 0, jobName: '', runId: 0, environmentId: 0, environmentName: '', projectId: 0, projectName: '' },
  ...{ engineVersion: '', statusMessage: null, reason: null, finishedUnixMs: null, erroredUnixMs: null },
} as const;

/** Between two looks, in milliseconds. */
const LOOK_MS = 60_000;
/** A run is slow that takes so many times its usual length. */
const SLOW_FACTOR = 3;
/** The usual length is the median of so many successful runs, if there are as many as the second. */
const USUAL_OF = 20;
const USUAL_FROM = 3;
/** Nobody waits for less, in milliseconds: short runs vary. */
const MIN_SLOW_MS = 60_000;

/** Looks for jobs that should have run and did not, and for runs that take far longer than usual, where a subscription expects them. */
export class ExpectationWatch {
  private timer: Timer | undefined;
  private isStopped = false;

  constructor(
    private readonly deps: {
      readonly db: StateDb;
      readonly clock: Clock;
      readonly logger: Logger;
      /** Something was written. */
      readonly wake: () => void;
    },
  ) {}

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
    const webhooks = db.withTables<WebhookTables>();
    const rows = await webhooks
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('expect_ms', 'is not', null)
      .where('state', '=', 'active')
      .execute();
    let count = 0;
    for (const row of rows) {
      const nowUnixMs = clock.nowUnixMs();
      // Several processes look, and one after the other writes.
      count += await changeState(
        db,
        async (transaction) => {
          const subscription = toSubscription(row);
          const found = await findUnexpected(transaction, subscription, nowUnixMs);
          await writeNotices(
            transaction.withTables<WebhookTables>(),
            found.map((one) => ({ to: subscription, ...one })),
            nowUnixMs,
          );
          return found.length;
        },
        'webhook',
      );
    }
    if (count > 0) wake();
  }
}

async function findUnexpected(
  runs: Transaction<StateTables>,
  subscription: WebhookSubscription,
  nowUnixMs: number,
): Promise<readonly { readonly type: NoticeType; readonly facts: RunFacts }[]> {
  const { accountId, jobIds, filter, expectMs, updatedUnixMs } = subscription;
  if (expectMs === null) return [];
  const latest = await runs
    .selectFrom('executions')
    .select(['job_id', 'environment_id'])
    .select(({ fn }) => fn.max('id').as('id'))
    .where('account_id', '=', accountId)
    .$if(jobIds.length > 0, (query) => query.where('job_id', 'in', [...jobIds]))
    .groupBy(['job_id', 'environment_id'])
    .execute();
  const found: { readonly type: NoticeType; readonly facts: RunFacts }[] = [];
  for (const { id } of latest) {
    const run = await new SqlRunCatalog(runs).findRun(accountId, Number(id));
    if (run === undefined) continue;
    if (filter.environments.length > 0 && !filter.environments.includes(run.environment.name)) continue;
    if (filter.projects.length > 0 && !filter.projects.includes(run.project.name)) continue;
    const startedUnixMs = run.dequeuedUnixMs ?? run.createdUnixMs;
    const facts: RunFacts = {
      ...{ jobId: run.job.id, jobName: run.job.name, runId: run.id },
      ...{ environmentId: run.environment.id, environmentName: run.environment.name },
      ...{ projectId: run.project.id, projectName: run.project.name, engineVersion: run.engineVersion ?? '' },
      ...{ status: run.status, statusMessage: null, reason: run.reason, startedUnixMs },
      ...{ finishedUnixMs: null, erroredUnixMs: null },
    };
    const notice = await noticeOf();
    if (notice === undefined) continue;
    const type = notice.about === 'overdue' ? 'job.run.overdue' : 'job.run.slow';
    // Once for each run; again when the event is no longer kept.
    const before = await runs
      .withTables<WebhookTables>()
      .selectFrom('webhook_events')
      .select('id')
      .where('subscription_id', '=', subscription.id)
      .where('job_id', '=', run.job.id)
      .where('run_id', '=', run.id)
      .where('event_type', '=', type)
      .executeTakeFirst();
    if (before === undefined) found.push({ type, facts: { ...facts, notice } });

    async function noticeOf(): Promise<Notice | undefined> {
      if (run === undefined || expectMs === null) return undefined;
      if (run.status === RUN_STATUS.running) {
        const usualMs = await usualLengthMs(runs, run.job.id, run.environment.id);
        const runningMs = nowUnixMs - startedUnixMs;
        if (usualMs === undefined || runningMs < Math.max(SLOW_FACTOR * usualMs, MIN_SLOW_MS)) return undefined;
        return { about: 'slow', usualSeconds: seconds(usualMs), runningSeconds: seconds(runningMs) };
      }
      // What was expected only now has as long from now on.
      if (nowUnixMs - Math.max(startedUnixMs, updatedUnixMs) <= expectMs) return undefined;
      const lastStartedAt = new Date(startedUnixMs).toISOString();
      return { about: 'overdue', expectedEverySeconds: seconds(expectMs), lastStartedAt };
    }
  }
  return found;
}

async function usualLengthMs(
  runs: Transaction<StateTables>,
  jobId: number,
  environmentId: number,
): Promise<number | undefined> {
  const rows = await runs
    .selectFrom('executions')
    .select(['started_unix_ms', 'ended_unix_ms'])
    .where('job_id', '=', jobId)
    .where('environment_id', '=', environmentId)
    .where('status', '=', RUN_STATUS.success)
    .where('ended_unix_ms', 'is not', null)
    .orderBy('id', 'desc')
    .limit(USUAL_OF)
    .execute();
  if (rows.length < USUAL_FROM) return undefined;
  const lengths = rows.map((row) => Number(row.ended_unix_ms) - row.started_unix_ms).sort((a, b) => a - b);
  return lengths[Math.floor(lengths.length / 2)];
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}
