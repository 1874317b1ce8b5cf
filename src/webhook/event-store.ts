import { sql, type Transaction } from 'kysely';
import { groupBy } from '../core/lists.js';
import type { Page } from '../storage/database.js';
import { nextIds } from '../storage/database.js';
import type { StateDb, StateTables } from '../storage/state-tables.js';
import type { CircuitBreaker } from './circuit-breaker.js';
import type {
  ArchivedSubscription,
  AttemptResult,
  EventSelection,
  RunFacts,
  SentRequest,
  WebhookAttempt,
  WebhookEvent,
  WebhookEventState,
} from './event.js';
import { noticeArchiving } from './notices.js';
import type { WebhookSubscription } from './subscription.js';
import {
  ATTEMPT_ROWS,
  changeWebhooks,
  EVENT_ROWS,
  insertEvents,
  NOT_CLAIMED,
  SUBSCRIPTION_ROWS,
  type WebhookDb,
  type WebhookTables,
  type WebhookTransaction,
} from './tables.js';

/** The holder that claims events to deliver them, and the duration of its claim. */
export interface Claim {
  /** Unique among processes. */
  readonly holder: string;
  readonly nowUnixMs: number;
  readonly leaseUntilUnixMs: number;
}

/** Selects the events to redeliver. */
export type ReplayScope =
  | { readonly eventId: string }
  /** All events that failed or were skipped since then, of one subscription or of the whole account. */
  | { readonly sinceUnixMs: number; readonly subscriptionId?: string };

/** Selects events of a list. */
export interface EventQuery {
  readonly of: { readonly subscriptionId: string } | { readonly runId: number };
  /** Left out for all. */
  readonly state?: WebhookEventState;
  readonly limit: number;
  readonly offset: number;
}

/** An event with the name of its subscription. */
export type ListedEvent = WebhookEvent & { readonly subscriptionName: string };

/** How many due events are searched for one that can be claimed. Behind this many events that wait for an earlier event of their job, others wait too. */
const MAX_LOOKED_AT = 256;
const MINUTE_MS = 60_000;
/** Earlier events of a job that are looked through for repeats of a failure. */
const MAX_NOTIFIED_BEFORE = 200;

/** Events of subscriptions, and the log of attempts to deliver them. The outbox adds them as runs change. */
export class WebhookEventStore {
  private readonly db: WebhookDb;

  /** @param archiveListener who is notified of subscriptions of the first account that name nobody: an id, or `mailto:` and addresses; `off` for nobody */
  constructor(
    db: StateDb,
    private readonly archiveListener = 'off',
  ) {
    this.db = db.withTables<WebhookTables>();
  }

  /**
   * Lists subscriptions that are not paused and have an event that can be claimed; leaves out the given ones. Those with the fewest
   * failures in a row come first, and of these the ones that were served longest ago, so that all take their turn.
   */
  async listReady(
    nowUnixMs: number,
    without: readonly string[],
    limit: number,
    standing: 'proven' | 'unproven' | 'any' = 'any',
  ): Promise<readonly WebhookSubscription[]> {
    if (limit <= 0) return [];
    const rows = await this.db
      .selectFrom('webhook_subscriptions as subscription')
      .selectAll()
      .$if(standing === 'proven', (query) =>
        query.where('failed_count', '=', 0).where('dispatched_unix_ms', 'is not', null),
      )
      .$if(standing === 'unproven', (query) =>
        query.where(({ or, eb }) => or([eb('failed_count', '>', 0), eb('dispatched_unix_ms', 'is', null)])),
      )
      .where('paused_until_unix_ms', '<=', nowUnixMs)
      .where('next_slot_unix_ms', '<=', nowUnixMs)
      .$if(without.length > 0, (query) => query.where('id', 'not in', without))
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('webhook_events as event')
            .select('event.seq')
            .whereRef('event.subscription_id', '=', 'subscription.id')
            .where(IS_PENDING)
            .where('event.due_unix_ms', '<=', nowUnixMs)
            .where('event.lease_until_unix_ms', '<=', nowUnixMs)
            .where(({ or, eb }) => or([eb('subscription.state', '=', 'active'), eb('event.is_forced', '=', 1)])),
        ),
      )
      .orderBy('failed_count')
      .orderBy('dispatched_unix_ms')
      .limit(limit)
      .execute();
    return rows.map((row) => SUBSCRIPTION_ROWS.toItem(row));
  }

  /** Returns what the last attempt to deliver an event has sent; `undefined` where it could send nothing. */
  async lastRequest(eventId: string): Promise<SentRequest | undefined> {
    const row = await this.db
      .selectFrom('webhook_attempts')
      .selectAll()
      .where('event_id', '=', eventId)
      .orderBy('attempt_index', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (row === undefined || row.request_body === '') return undefined;
    const { requestHeaders: headers, requestBody: body } = ATTEMPT_ROWS.toItem(row);
    return { headers, body };
  }

  /**
   * Takes events of a subscription, oldest first: due ones that are not claimed, and whose earlier ones of the same job were
   * tried. Each has one holder at a time. A subscription with a rate cap gives one, if it is its time.
   */
  async claim(
    { id, maxPerMinute }: Pick<WebhookSubscription, 'id' | 'maxPerMinute'>,
    limit: number,
    { holder, nowUnixMs, leaseUntilUnixMs }: Claim,
  ): Promise<readonly WebhookEvent[]> {
    if (maxPerMinute !== null && !(await this.takeSlot(id, maxPerMinute, nowUnixMs))) return [];
    const due = this.db
      .selectFrom('webhook_events as event')
      .innerJoin('webhook_subscriptions as subscription', 'subscription.id', 'event.subscription_id')
      .select(['event.seq', 'event.job_id'])
      .where('event.subscription_id', '=', id)
      .where(IS_PENDING)
      .where('event.due_unix_ms', '<=', nowUnixMs)
      .where('event.lease_until_unix_ms', '<=', nowUnixMs)
      .where(({ or, eb }) => or([eb('subscription.state', '=', 'active'), eb('event.is_forced', '=', 1)]))
      .orderBy('event.due_unix_ms')
      .orderBy('event.seq')
      .limit(MAX_LOOKED_AT);
    // One statement that evaluates its conditions again when another writer was faster: each event has one holder.
    const rows = await this.db
      .updateTable('webhook_events')
      .set({ lease_until_unix_ms: leaseUntilUnixMs, lease_holder: holder })
      .where('seq', 'in', ({ selectFrom }) =>
        selectFrom(due.as('due'))
          .select('due.seq')
          .where((earlier) =>
            earlier.not(
              earlier.exists(
                earlier
                  .selectFrom('webhook_events as event')
                  .select('event.seq')
                  .where('event.subscription_id', '=', id)
                  .whereRef('event.job_id', '=', 'due.job_id')
                  .where(sql<boolean>`event.state = 'pending' and event.is_tried = 0`)
                  .whereRef('event.seq', '<', 'due.seq'),
              ),
            ),
          )
          .orderBy('due.seq')
          .limit(maxPerMinute === null ? limit : 1),
      )
      .where('state', '=', 'pending')
      .where('lease_until_unix_ms', '<=', nowUnixMs)
      .returningAll()
      .execute();
    return rows.map((row) => EVENT_ROWS.toItem(row)).sort((a, b) => a.seq - b.seq);
  }

  /**
   * Saves results of attempts, in one transaction. A result of an event that another holder has claimed meanwhile is logged and
   * changes nothing else. An event that failed at a URL the subscription no longer has is due at once, with all
   * attempts before it, and does not count against the subscription. Events of an archived subscription are skipped.
   */
  finish(
    results: readonly AttemptResult[],
    holder: string,
    breaker: CircuitBreaker,
  ): Promise<readonly ArchivedSubscription[]> {
    if (results.length === 0) return Promise.resolve([]);
    return changeWebhooks(this.db, (transaction) =>
      new EventResults(transaction, holder, breaker, this.archiveListener).write(results),
    );
  }

  /**
   * Saves what a claimed event is about: `selections` has one or more parts of its run, of which the first is the event's,
   * and each further one gets another event. @returns the event with its part; `undefined` if another holder has it
   */
  select(
    event: WebhookEvent,
    selections: readonly EventSelection[],
    holder: string,
    newId: () => string,
  ): Promise<WebhookEvent | undefined> {
    const [first = {}, ...further] = selections;
    const factsOf = (selection: EventSelection): RunFacts => ({ ...event.facts, selection });
    return changeWebhooks(this.db, async (transaction) => {
      const firstSeq = await nextIds(transaction, 'webhook', further.length);
      const row = await transaction
        .updateTable('webhook_events')
        .set(EVENT_ROWS.toRow({ facts: factsOf(first) }))
        .where('id', '=', event.id)
        .where('lease_holder', '=', holder)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const added = further.map((selection, index) => ({
        ...row,
        ...EVENT_ROWS.toRow({ seq: firstSeq + index, id: newId(), facts: factsOf(selection), ...NOT_CLAIMED }),
      }));
      await insertEvents(transaction, added);
      return EVENT_ROWS.toItem(row);
    });
  }

  /** A claimed event is not sent. @param reason in words */
  async filter(event: WebhookEvent, reason: string, holder: string): Promise<void> {
    await this.db
      .updateTable('webhook_events')
      // A replay is delivered regardless of filters.
      .set(EVENT_ROWS.toRow({ facts: { ...event.facts, selection: {} }, state: 'filtered', filteredReason: reason }))
      .set(EVENT_ROWS.toRow({ isTried: true, ...NOT_CLAIMED }))
      .where('id', '=', event.id)
      .where('lease_holder', '=', holder)
      .execute();
  }

  /** Lists a subscription's latest events of a job before an event, delivered or being delivered, the latest first. */
  async notifiedBefore(event: Pick<WebhookEvent, 'subscriptionId' | 'facts'>): Promise<readonly WebhookEvent[]> {
    const rows = await this.db
      .selectFrom('webhook_events as event')
      .selectAll('event')
      .where('subscription_id', '=', event.subscriptionId)
      .where('job_id', '=', event.facts.jobId)
      .where('run_id', '<', event.facts.runId)
      .where('event_type', '<>', 'job.run.started')
      .where('state', 'in', ['pending', 'delivered'])
      .orderBy('seq', 'desc')
      .limit(MAX_NOTIFIED_BEFORE)
      .execute();
    return rows.map((row) => EVENT_ROWS.toItem(row));
  }

  /** Lists a subscription's events of a failed run that are delivered, or to be. @param db the state, or a transaction */
  async ofRun(
    subscriptionId: string,
    runId: number,
    db: StateDb | Transaction<StateTables> = this.db,
  ): Promise<readonly WebhookEvent[]> {
    const rows = await db
      .withTables<WebhookTables>()
      .selectFrom('webhook_events')
      .selectAll()
      .where('subscription_id', '=', subscriptionId)
      .where('run_id', '=', runId)
      .where('event_type', '=', 'job.run.errored')
      .where('state', 'in', ['pending', 'delivered'])
      .execute();
    return rows.map((row) => EVENT_ROWS.toItem(row));
  }

  /** Releases events that were claimed and not finished. @param holder all holders with this prefix; everybody when left out */
  async release(holder?: string): Promise<void> {
    await this.db
      .updateTable('webhook_events')
      .set(EVENT_ROWS.toRow(NOT_CLAIMED))
      .where('state', '=', 'pending')
      .where('lease_until_unix_ms', '>', 0)
      .$if(holder !== undefined, (query) => query.where('lease_holder', 'like', `${holder}%`))
      .execute();
  }

  /** Lists the events of a subscription, or those that a run caused, newest first. */
  async list(accountId: number, { of, limit, offset, state }: EventQuery): Promise<Page<ListedEvent>> {
    const matching = events(this.db, accountId)
      .$if('subscriptionId' in of, (query) =>
        query.where('event.subscription_id', '=', 'subscriptionId' in of ? of.subscriptionId : ''),
      )
      .$if('runId' in of, (query) => query.where('event.run_id', '=', 'runId' in of ? of.runId : 0))
      .$if(state !== undefined, (query) => query.where('event.state', '=', state ?? 'pending'));
    const rows = await matching
      .selectAll('event')
      .select('subscription.name as subscription_name')
      .orderBy('event.seq', 'desc')
      .limit(limit)
      .offset(offset)
      .execute();
    const { count } = await matching.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
    const items = rows.map(({ subscription_name: subscriptionName, ...row }) => ({
      ...EVENT_ROWS.toItem(row),
      subscriptionName,
    }));
    return { items, totalCount: Number(count) };
  }

  /** @param subscriptionId left out for any of the account */
  async find(accountId: number, eventId: string, subscriptionId?: string): Promise<WebhookEvent | undefined> {
    const row = await events(this.db, accountId)
      .selectAll('event')
      .where('event.id', '=', eventId)
      .$if(subscriptionId !== undefined, (query) => query.where('event.subscription_id', '=', subscriptionId ?? ''))
      .executeTakeFirst();
    return row && EVENT_ROWS.toItem(row);
  }

  /** Lists the attempts of an event, oldest first. */
  async attemptsOf(eventId: string): Promise<readonly WebhookAttempt[]> {
    return (await this.attemptsOfEach([eventId])).get(eventId) ?? [];
  }

  /** Lists those of each of these events; those that have none are left out. @param eventIds as many as a page shows */
  async attemptsOfEach(eventIds: readonly string[]): Promise<ReadonlyMap<string, readonly WebhookAttempt[]>> {
    if (eventIds.length === 0) return new Map();
    const rows = await this.db
      .selectFrom('webhook_attempts')
      .selectAll()
      .where('event_id', 'in', eventIds)
      .orderBy('attempt_index')
      .execute();
    return groupBy(
      rows.map((row) => ATTEMPT_ROWS.toItem(row)),
      ({ eventId }) => eventId,
    );
  }

  /**
   * Makes events due again, with all attempts before them, also where their subscription is not active; pending ones stay
   * as they are. @returns how many
   */
  replay(accountId: number, scope: ReplayScope, nowUnixMs: number): Promise<number> {
    return changeWebhooks(this.db, async (transaction) => {
      const ofAccount = transaction
        .selectFrom('webhook_subscriptions')
        .select('id')
        .where('account_id', '=', accountId)
        .$if('subscriptionId' in scope, (query) =>
          query.where('id', '=', ('subscriptionId' in scope && scope.subscriptionId) || ''),
        );
      const replayed = await transaction
        .updateTable('webhook_events')
        .set({ state: 'pending', filtered_reason: null, is_forced: 1, round_count: 0, due_unix_ms: nowUnixMs })
        .set(EVENT_ROWS.toRow(NOT_CLAIMED))
        .where('subscription_id', 'in', ofAccount)
        .where(({ and, eb }) =>
          'eventId' in scope
            ? and([eb('id', '=', scope.eventId), eb('state', '<>', 'pending')])
            : and([eb('created_unix_ms', '>=', scope.sinceUnixMs), eb('state', 'in', ['failed', 'skipped'])]),
        )
        .returning('subscription_id')
        .execute();
      const touched = [...new Set(replayed.map(({ subscription_id }) => subscription_id))];
      if (touched.length > 0) {
        // A replay does not wait for a pause to end.
        await transaction
          .updateTable('webhook_subscriptions')
          .set({ paused_until_unix_ms: 0 })
          .where('id', 'in', touched)
          .execute();
      }
      return replayed.length;
    });
  }

  async countPending(): Promise<number> {
    const { count } = await this.db
      .selectFrom('webhook_events as event')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(IS_PENDING)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Counts those of each of these subscriptions; those that have none are left out. */
  async countPendingOf(subscriptionIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (subscriptionIds.length === 0) return new Map();
    const rows = await this.db
      .selectFrom('webhook_events as event')
      .select(({ fn }) => ['event.subscription_id', fn.countAll<number>().as('count')])
      .where(IS_PENDING)
      .where('event.subscription_id', 'in', subscriptionIds)
      .groupBy('event.subscription_id')
      .execute();
    return new Map(rows.map(({ subscription_id, count }) => [subscription_id, Number(count)]));
  }

  /** Takes the next attempt of a subscription with a rate cap. @returns whether it may have one now; if so, its next one is a while later. */
  private async takeSlot(id: string, maxPerMinute: number, nowUnixMs: number): Promise<boolean> {
    const taken = await this.db
      .updateTable('webhook_subscriptions')
      .set({ next_slot_unix_ms: nowUnixMs + Math.ceil(MINUTE_MS / maxPerMinute) })
      .where('id', '=', id)
      .where('next_slot_unix_ms', '<=', nowUnixMs)
      .returning('id')
      .executeTakeFirst();
    return taken !== undefined;
  }
}

/** Spelt as the partial indexes spell it. */
const IS_PENDING = sql<boolean>`event.state = 'pending'`;

function events(db: WebhookDb, accountId: number) {
  return db
    .selectFrom('webhook_events as event')
    .innerJoin('webhook_subscriptions as subscription', 'subscription.id', 'event.subscription_id')
    .where('subscription.account_id', '=', accountId);
}

/** Saves results of attempts within one transaction. */
export class EventResults {
  constructor(
    private readonly transaction: WebhookTransaction,
    private readonly holder: string,
    private readonly breaker: CircuitBreaker,
    private readonly archiveListener: string,
  ) {}

  async write(results: readonly AttemptResult[]): Promise<readonly ArchivedSubscription[]> {
    const logged: WebhookTables['webhook_attempts'][] = [];
    const bySubscription = new Map<string, AttemptResult[]>();
    const urlVersions = await this.findUrlVersions(results);
    for (const result of results) {
      const { subscriptionId } = result.event;
      const isOutdated = urlVersions.get(subscriptionId) !== result.urlVersion;
      const index = await this.writeEvent(isOutdated ? tryAgain(result) : result, isOutdated);
      if (index === undefined) continue;
      const attempt = { ...result.attempt, eventId: result.event.id, subscriptionId, attemptIndex: index };
      logged.push(ATTEMPT_ROWS.toRow(attempt));
      if (isOutdated) continue;
      bySubscription.set(subscriptionId, [...(bySubscription.get(subscriptionId) ?? []), result]);
    }
    if (logged.length > 0) await this.transaction.insertInto('webhook_attempts').values(logged).execute();
    const archived: ArchivedSubscription[] = [];
    for (const [id, some] of bySubscription) archived.push(...(await this.writeStanding(id, some)));
    return archived;
  }

  private async findUrlVersions(results: readonly AttemptResult[]): Promise<ReadonlyMap<string, number>> {
    const ids = [...new Set(results.map(({ event }) => event.subscriptionId))];
    const rows = await this.transaction
      .selectFrom('webhook_subscriptions')
      .select(['id', 'url_version'])
      .where('id', 'in', ids)
      .execute();
    return new Map(rows.map(({ id, url_version }) => [id, url_version]));
  }

  /**
   * @param isOutdated whether it was sent to a URL that the subscription no longer has
   * @returns the attempt's position; `undefined` if the event no longer exists
   */
  private async writeEvent({ event, next, attempt }: AttemptResult, isOutdated: boolean): Promise<number | undefined> {
    const { transaction, holder } = this;
    const counted = await transaction
      .updateTable('webhook_events')
      .set(({ eb }) => ({
        attempt_count: eb('attempt_count', '+', 1),
        round_count: isOutdated ? 0 : eb('round_count', '+', 1),
        ...{ is_tried: 1, lease_until_unix_ms: 0, lease_holder: null },
        // An event that was skipped during the attempt stays skipped, unless it arrived.
        state:
          next.state === 'delivered'
            ? next.state
            : eb.case().when('state', '=', 'pending').then(next.state).else(eb.ref('state')).end(),
        ...(next.state === 'pending' && { due_unix_ms: next.dueUnixMs }),
        ...(attempt.httpStatusCode !== null && { http_status_code: attempt.httpStatusCode }),
      }))
      .where('id', '=', event.id)
      .where('lease_holder', '=', holder)
      // The holder itself may have claimed it again, after the lease of this attempt.
      .where('lease_until_unix_ms', '=', event.leaseUntilUnixMs)
      .returning('attempt_count')
      .executeTakeFirst();
    if (counted !== undefined) return counted.attempt_count;
    const taken = await transaction
      .updateTable('webhook_events')
      .set(({ eb }) => ({ attempt_count: eb('attempt_count', '+', 1) }))
      .where('id', '=', event.id)
      .returning('attempt_count')
      .executeTakeFirst();
    return taken?.attempt_count;
  }

  private async writeStanding(id: string, results: readonly AttemptResult[]): Promise<readonly ArchivedSubscription[]> {
    const { transaction } = this;
    const row = await transaction
      .selectFrom('webhook_subscriptions')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirst();
    if (row === undefined) return [];
    const subscription = SUBSCRIPTION_ROWS.toItem(row);
    const { standing, archiveReason, reached } = this.breaker(subscription, results);
    const isArchived = archiveReason !== null && row.state === 'active';
    const lastUnixMs = Math.max(...results.map(({ attempt }) => endedUnixMs(attempt)));
    await transaction
      .updateTable('webhook_subscriptions')
      .set(
        SUBSCRIPTION_ROWS.toRow({
          ...standing,
          ...(isArchived && { state: 'archived', archiveReason, updatedUnixMs: lastUnixMs }),
        }),
      )
      .where('id', '=', id)
      .execute();
    if (reached !== undefined && row.state === 'active') {
      const reason = archiveReason ?? standing.lastError ?? 'its deliveries fail';
      const warned = { ...standing, percent: reached, reason };
      await noticeArchiving(transaction, subscription, warned, this.archiveListener, lastUnixMs);
    }
    if (!isArchived) return [];
    const skippedCount = await skipPending(transaction, id);
    return [{ id, name: row.name, accountId: row.account_id, reason: archiveReason, skippedCount }];
  }
}

/** The URL that the subscription has by now did not get it yet. */
function tryAgain(result: AttemptResult): AttemptResult {
  if (result.next.state === 'delivered') return result;
  return { ...result, next: { state: 'pending', dueUnixMs: endedUnixMs(result.attempt) } };
}

function endedUnixMs({ startedUnixMs, durationMs }: AttemptResult['attempt']): number {
  return startedUnixMs + durationMs;
}

/** Skips the events that wait for a subscription, but for replayed ones. @returns how many */
export async function skipPending(transaction: WebhookTransaction, subscriptionId: string): Promise<number> {
  const { numUpdatedRows } = await transaction
    .updateTable('webhook_events')
    .set({ state: 'skipped' })
    .where('subscription_id', '=', subscriptionId)
    .where('state', '=', 'pending')
    .where('is_forced', '=', 0)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Why an event cannot be found to be sent once more. */
export const NOT_REPLAYABLE = 'it may be older than retain-deliveries (7 days by default), or still be tried';
