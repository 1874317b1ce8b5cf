import { randomBytes } from 'node:crypto';
import type { Transaction } from 'kysely';
import type { RunMeasures } from '../api/run-measures.js';
import { AS_USUAL } from '../config/duration.js';
import type { Clock, Timer } from '../core/clock.js';
import { groupBy, quantile } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import { ageText, counted, lengthText } from '../core/text.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import { hasSameCommands } from '../run/measures/recovery.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { changeState } from '../storage/database.js';
import { type CatalogRun, commandLinesByRun, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS, type StateDb, type StateTables } from '../storage/state-tables.js';
import { commonFactsOf, NO_RUN, type Notice, type RunFacts, type SlowNode } from './event.js';
import { SUPPRESSED } from './outbox.js';
import type { NoticeType, WebhookSubscription } from './subscription.js';
import {
  activeSubscriptions,
  addEvents,
  ksuid,
  type NewEvent,
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
      if (notice.usuallyEverySeconds !== undefined)
        return `${job} did not run: it usually starts again after ${ageText(notice.usuallyEverySeconds)}, and has not for ${ageText(notice.expectedEverySeconds)}`;
      return `${job} did not run: a run is expected every ${timeText(notice.expectedEverySeconds)}`;
    case 'slow': {
      const length = secondsText(notice.runningSeconds);
      const usual = secondsText(notice.usualSeconds);
      if (notice.endedAt === undefined)
        return `${job} is slow: #${runId} has been running for ${length}, and usually takes ${usual}`;
      const cause = notice.node === undefined ? '' : `; ${slowNodeText(notice.node)}`;
      return `${job} was slow: #${runId} took ${length}, and usually takes ${usual}${cause}`;
    }
  }
}

function slowNodeText({ label, seconds: length, usualSeconds }: SlowNode): string {
  return `${label} took ${secondsText(length)} of it, usually ${secondsText(usualSeconds)}`;
}

function secondsText(length: number): string {
  return lengthText(length * 1_000);
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
      return [['Run', `#${runId}`], ...(notice.node === undefined ? [] : [['Node', notice.node.uniqueId] as const])];
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
/** A job that is expected as usual is overdue after so many times the median time between its last starts, so many at most and at least. */
const RHYTHM_FACTOR = 1.5;
const RHYTHM_STARTS = 11;
const RHYTHM_FROM_STARTS = 4;

/** A run is slow that takes so many times its usual length, while it goes on and when it has succeeded. */
const SLOW_FACTOR = 3;
const SLOW_END_FACTOR = 2;
/** The usual length is the median of so many successful runs, if there are as many as the second. */
const USUAL_OF = 20;
const USUAL_FROM = 3;
/** Runs of the job among which they are looked for. */
const MAX_LOOKED_AT = 100;
/** Nobody waits for less, in milliseconds: short runs vary. */
const MIN_SLOW_MS = 60_000;
/** Nobody is notified of what was slow longer ago, in milliseconds. */
const MAX_ENDED_AGO_MS = 86_400_000;
/** A run that is over is measured in the background; so long it is waited for, in milliseconds. */
const MEASURED_WITHIN_MS = 600_000;
/** A node is the cause of a delay if at least this part of it fell to the node. */
const MIN_PART_OF_DELAY = 1 / 3;

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
      readonly measures: Pick<RunMeasures, 'digestsOf'>;
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
    let count = 0;
    for (const subscription of await activeSubscriptions(db)) {
      if (!this.expectsAny(subscription)) continue;
      const nowUnixMs = clock.nowUnixMs();
      const found = await this.findUnexpected(subscription, nowUnixMs);
      if (found.length === 0) continue;
      // Several processes look, and one after the other writes.
      count += await changeState(
        db,
        async (transaction) => {
          const fresh: Unexpected[] = [];
          for (const one of found) {
            if (!(await isNotified(transaction, subscription, one.eventType, one.facts))) fresh.push(one);
          }
          await addNotices(transaction.withTables<WebhookTables>(), fresh, nowUnixMs);
          return fresh.length;
        },
        'webhook',
      );
    }
    if (count > 0) wake();
  }

  private expectsAny(subscription: WebhookSubscription): boolean {
    return subscription.expectMs !== null || (this.deps.declared.size > 0 && isNotifiedOfDeclared(subscription));
  }

  /** Returns in which time a run of a job is expected, or `AS_USUAL`; `undefined` for none. */
  private expectedMs(subscription: WebhookSubscription, jobName: string): number | undefined {
    const declaredMs = isNotifiedOfDeclared(subscription) ? this.deps.declared.get(jobName) : undefined;
    return declaredMs ?? subscription.expectMs ?? undefined;
  }

  private async findUnexpected(subscription: WebhookSubscription, nowUnixMs: number): Promise<readonly Unexpected[]> {
    const { db } = this.deps;
    const { filter, updatedUnixMs } = subscription;
    const runs = [...(await latestRuns(db, subscription)), ...(await this.jobsWithoutRun(subscription))];
    const found: Unexpected[] = [];
    for (const run of runs) {
      const { facts } = run;
      const expectedMs = this.expectedMs(subscription, facts.jobName);
      if (expectedMs === undefined) continue;
      if (filter.environments.length > 0 && !filter.environments.includes(facts.environmentName)) continue;
      if (filter.projects.length > 0 && !filter.projects.includes(facts.projectName)) continue;
      // What was expected only now has as long from now on.
      const sinceUnixMs = Math.max(facts.startedUnixMs, updatedUnixMs);
      const isIdle = !run.isRunning && run.endedUnixMs === null;
      const rhythm = isIdle ? await this.rhythmOf(subscription.accountId, facts, expectedMs) : undefined;
      const overdue = rhythm && overdueNotice(facts, rhythm, nowUnixMs - sinceUnixMs);
      const eventType = overdue === undefined ? 'job.run.slow' : 'job.run.overdue';
      if (await isNotified(db, subscription, eventType, facts)) continue;
      const notice = overdue ?? (await this.slowNotice(subscription, run, nowUnixMs));
      if (notice !== undefined) found.push({ subscription, eventType, facts: { ...facts, notice } });
    }
    return found;
  }

  /** Returns in which time a job starts again; `undefined` if it is expected as usual, and too few starts are known. */
  private async rhythmOf(accountId: number, facts: RunFacts, expectedMs: number): Promise<Rhythm | undefined> {
    if (expectedMs !== AS_USUAL) return { expectedMs };
    const { jobId, environmentId } = facts;
    const last = { orderBy: 'created', isDescending: true, limit: RHYTHM_STARTS, offset: 0 } as const;
    const { items } = await new RunCatalog(this.deps.db).listRuns(accountId, { jobId, environmentId, ...last });
    const starts = items.map(({ createdUnixMs }) => createdUnixMs);
    const intervals = starts.slice(1).map((start, index) => (starts[index] ?? start) - start);
    const usualMs = quantile(intervals, 0.5);
    if (usualMs === undefined || starts.length < RHYTHM_FROM_STARTS) return undefined;
    return { expectedMs: Math.max(LOOK_MS, RHYTHM_FACTOR * usualMs), usualMs };
  }

  private async slowNotice(
    { accountId, updatedUnixMs }: WebhookSubscription,
    { facts, isRunning, endedUnixMs }: LatestRun,
    nowUnixMs: number,
  ): Promise<Notice | undefined> {
    const isNews = endedUnixMs !== null && endedUnixMs >= Math.max(updatedUnixMs, nowUnixMs - MAX_ENDED_AGO_MS);
    if (!isRunning && !isNews) return undefined;
    const runningMs = (endedUnixMs ?? nowUnixMs) - facts.startedUnixMs;
    if (runningMs < MIN_SLOW_MS) return undefined;
    const catalog = new RunCatalog(this.deps.db);
    const before = await runsAlike(catalog, accountId, facts);
    const usualMs =
      before.length < USUAL_FROM
        ? undefined
        : quantile(
            before.map(({ lengthMs }) => lengthMs),
            0.5,
          );
    const factor = isRunning ? SLOW_FACTOR : SLOW_END_FACTOR;
    if (usualMs === undefined || runningMs < factor * usualMs) return undefined;
    const notice = { about: 'slow', usualSeconds: seconds(usualMs), runningSeconds: seconds(runningMs) } as const;
    if (endedUnixMs === null) return notice;
    const digests = await this.digestsOf(catalog, accountId, [facts.runId, ...before.map(({ id }) => id)]);
    const [own, ...others] = digests;
    if (own === undefined && nowUnixMs - endedUnixMs < MEASURED_WITHIN_MS) return undefined;
    const node = own && slowNode(own, others, runningMs - usualMs);
    return { ...notice, endedAt: new Date(endedUnixMs).toISOString(), ...(node !== undefined && { node }) };
  }

  /** Reads the digests of runs, in their order; of those that are not measured yet `undefined`. */
  private async digestsOf(
    catalog: RunCatalog,
    accountId: number,
    runIds: readonly number[],
  ): Promise<readonly (readonly CommandDigest[] | undefined)[]> {
    const steps = groupBy(await catalog.stepsOf(accountId, runIds), ({ runId }) => runId);
    return Promise.all(runIds.map((runId) => this.deps.measures.digestsOf(steps.get(runId) ?? [])));
  }

  /** Lists declared jobs that never ran, as runs without an id that began when the watch did. */
  private async jobsWithoutRun(subscription: WebhookSubscription): Promise<readonly LatestRun[]> {
    const names = [...this.deps.declared.keys()];
    if (names.length === 0 || !isNotifiedOfDeclared(subscription)) return [];
    const { accountId, jobIds } = subscription;
    const rows = await new RunCatalog(this.deps.db).listJobsWithoutRun(accountId, names, jobIds);
    return rows.map((row) => ({
      ...{ isRunning: false, endedUnixMs: null },
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

/** The latest run of a job in an environment: the last to start, or the last that succeeded. */
interface LatestRun {
  readonly facts: RunFacts;
  readonly isRunning: boolean;
  /** `null` for the last to start. */
  readonly endedUnixMs: number | null;
}

/** A notice that is to be written. */
type Unexpected = NewEvent & { readonly eventType: NoticeType };

async function latestRuns(db: StateDb, { accountId, jobIds }: WebhookSubscription): Promise<readonly LatestRun[]> {
  const catalog = new RunCatalog(db);
  const latest = await catalog.listJobEnvironments(accountId, jobIds);
  const runs: LatestRun[] = [];
  for (const { jobId, environmentId } of latest) {
    // By its start: an imported run of last week is not the last one.
    const last = { jobId, environmentId, isDescending: true, limit: 1, offset: 0 } as const;
    const started = await catalog.listRuns(accountId, { ...last, orderBy: 'created' });
    const succeeded = await catalog.listRuns(accountId, {
      ...{ ...last, orderBy: 'finished', statuses: [RUN_STATUS.success], withoutNotified: SUPPRESSED },
    });
    runs.push(...started.items.map((run) => latestRun(run, null)));
    runs.push(...succeeded.items.map((run) => latestRun(run, run.finishedUnixMs)));
  }
  return runs;
}

function latestRun(run: CatalogRun, endedUnixMs: number | null): LatestRun {
  const { status } = run;
  const startedUnixMs = run.dequeuedUnixMs ?? run.createdUnixMs;
  const facts = { ...NO_RUN, ...commonFactsOf(run), status, startedUnixMs };
  return { isRunning: status === RUN_STATUS.running, endedUnixMs, facts };
}

/** In which time a job starts again, in milliseconds; and how often it usually does, if it is expected by that. */
interface Rhythm {
  readonly expectedMs: number;
  readonly usualMs?: number;
}

function overdueNotice(facts: RunFacts, { expectedMs, usualMs }: Rhythm, waitedMs: number): Notice | undefined {
  if (waitedMs <= expectedMs) return undefined;
  const lastStartedAt = facts.runId === NO_RUN.runId ? null : new Date(facts.startedUnixMs).toISOString();
  const usual = usualMs !== undefined && { usuallyEverySeconds: seconds(usualMs) };
  return { about: 'overdue', expectedEverySeconds: seconds(expectedMs), ...usual, lastStartedAt };
}

/** Returns whether a subscription was notified of the same of a run; not known any more once the event is no longer kept. */
async function isNotified(
  db: StateDb | Transaction<StateTables>,
  { id }: WebhookSubscription,
  type: NoticeType,
  { jobId, runId }: RunFacts,
): Promise<boolean> {
  const before = await db
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

/** Lists the last successful runs of the same job, environment, project and commands, without the run itself. */
async function runsAlike(
  catalog: RunCatalog,
  accountId: number,
  { jobId, environmentId, projectId, runId }: RunFacts,
): Promise<readonly { readonly id: number; readonly lengthMs: number }[]> {
  const rows = await catalog.lengthsOf({ jobId, environmentId, projectId }, MAX_LOOKED_AT);
  const ids = [runId, ...rows.map(({ id }) => id)];
  const commandLines = await commandLinesByRun(catalog, accountId, ids);
  const asked = (id: number) => ({ commandLines: commandLines(id) });
  return rows.filter(({ id }) => id !== runId && hasSameCommands(asked(id), asked(runId))).slice(0, USUAL_OF);
}

/** Finds the node whose share of a run has grown most against its median in others; `undefined` where that is a small part of the delay. */
function slowNode(
  digests: readonly CommandDigest[],
  others: readonly (readonly CommandDigest[] | undefined)[],
  delayMs: number,
): SlowNode | undefined {
  const before = others.flatMap((one) => (one === undefined ? [] : [sharesOf(one)]));
  const grown = [...sharesOf(digests)].map(([uniqueId, { label, ms }]) => {
    const usualMs =
      quantile(
        before.map((shares) => shares.get(uniqueId)?.ms ?? 0),
        0.5,
      ) ?? 0;
    return { node: { uniqueId, label, seconds: seconds(ms), usualSeconds: seconds(usualMs) }, byMs: ms - usualMs };
  });
  const [most] = grown.toSorted((one, other) => other.byMs - one.byMs);
  return before.length > 0 && most !== undefined && most.byMs >= MIN_PART_OF_DELAY * delayMs ? most.node : undefined;
}

/** What of a run fell to each node, by its unique id. */
function sharesOf(
  digests: readonly CommandDigest[],
): ReadonlyMap<string, { readonly label: string; readonly ms: number }> {
  const shares = new Map<string, { readonly label: string; readonly ms: number }>();
  for (const { work } of digests) {
    for (const [at, uniqueId] of work.uniqueIds.entries()) {
      const ms = (shares.get(uniqueId)?.ms ?? 0) + (work.sharesMs[at] ?? 0);
      shares.set(uniqueId, { label: work.labels[at] ?? uniqueId, ms });
    }
  }
  return shares;
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}
