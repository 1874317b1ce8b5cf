import type { Transaction } from 'kysely';
import type { StateTables } from '../state-tables.js';
import type { StandingRule } from './event-store.js';
import { skipPending } from './skip-pending.js';
import { fromStanding, toSubscription } from './subscription-columns.js';
import type { ArchivedSubscription, AttemptResult } from './webhook-event.js';

/** Writes down what attempts came to, within one transaction. */
export class EventResults {
  constructor(
    private readonly transaction: Transaction<StateTables>,
    private readonly holder: string,
    private readonly rule: StandingRule,
  ) {}

  async write(results: readonly AttemptResult[]): Promise<readonly ArchivedSubscription[]> {
    const logged: StateTables['webhook_attempts'][] = [];
    const bySubscription = new Map<string, AttemptResult[]>();
    const urlVersions = await this.findUrlVersions(results);
    for (const result of results) {
      const { subscriptionId } = result.event;
      const isOutdated = urlVersions.get(subscriptionId) !== result.urlVersion;
      const index = await this.writeEvent(isOutdated ? tryAgain(result) : result, isOutdated);
      if (index === undefined) continue;
      logged.push(logRow(result, index));
      if (isOutdated) continue;
      bySubscription.set(subscriptionId, [...(bySubscription.get(subscriptionId) ?? []), result]);
    }
    if (logged.length > 0) await this.transaction.insertInto('webhook_attempts').values(logged).execute();
    const archived: ArchivedSubscription[] = [];
    for (const [id, own] of bySubscription) archived.push(...(await this.writeStanding(id, own)));
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
   * @returns the attempt's position; `undefined` where the event is no longer there
   */
  private async writeEvent({ event, next, attempt }: AttemptResult, isOutdated: boolean): Promise<number | undefined> {
    const { transaction, holder } = this;
    const counted = await transaction
      .updateTable('webhook_events')
      .set(({ eb }) => ({
        attempt_count: eb('attempt_count', '+', 1),
        round_count: isOutdated ? 0 : eb('round_count', '+', 1),
        ...{ is_tried: 1, lease_until_unix_ms: 0, lease_holder: null },
        // What was skipped while the attempt was under way stays so, unless it arrived.
        state:
          next.state === 'delivered'
            ? next.state
            : eb.case().when('state', '=', 'pending').then(next.state).else(eb.ref('state')).end(),
        ...(next.state === 'pending' && { due_unix_ms: next.dueUnixMs }),
        ...(attempt.httpStatusCode !== null && { http_status_code: attempt.httpStatusCode }),
      }))
      .where('id', '=', event.id)
      .where('lease_holder', '=', holder)
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
    const { standing, archiveReason } = this.rule(toSubscription(row), results);
    const isArchived = archiveReason !== null && row.state === 'active';
    await transaction
      .updateTable('webhook_subscriptions')
      .set({
        ...fromStanding(standing),
        ...(isArchived && { state: 'archived' as const, archive_reason: archiveReason }),
        ...(isArchived && { updated_unix_ms: Math.max(...results.map(({ attempt }) => endedUnixMs(attempt))) }),
      })
      .where('id', '=', id)
      .execute();
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

function logRow({ event, attempt }: AttemptResult, index: number): StateTables['webhook_attempts'] {
  return {
    event_id: event.id,
    attempt_index: index,
    subscription_id: event.subscriptionId,
    started_unix_ms: attempt.startedUnixMs,
    duration_ms: attempt.durationMs,
    http_status_code: attempt.httpStatusCode,
    error: attempt.error,
    request_headers: attempt.requestHeaders,
    request_body: attempt.requestBody,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody,
    resent_after: attempt.resentAfter,
  };
}
