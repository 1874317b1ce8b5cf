import { type SqlBool, sql } from 'kysely';
import type { Removable } from '../retention/feature.js';
import type { StateDb } from '../storage/state-tables.js';
import { changeWebhooks, type WebhookDb, type WebhookTables } from './tables.js';

/** Deliveries that go at a time. */
const PAGE = 100;
/** What is still to be delivered stays for so long, in milliseconds: longer than all attempts take. */
const WAITING_MS = 7 * 86_400_000;

/** An event for a subscription, with the log of the attempts to deliver it. */
export interface OldDelivery {
  /** The order in which events were made. */
  readonly seq: number;
  readonly createdUnixMs: number;
  /** Size of the event, the request and the response, in bytes. */
  readonly sizeBytes: number;
}

/** What retention removes: events of webhooks with the log of the attempts to deliver them. */
export class DeliveryStore {
  private readonly db: WebhookDb;

  constructor(db: StateDb) {
    this.db = db.withTables<WebhookTables>();
  }

  /** Returns what all of them take, in bytes. */
  async totalBytes(): Promise<number> {
    const events = await this.db
      .selectFrom('webhook_events as event')
      .select(({ fn }) => fn.sum(EVENT_BYTES).as('bytes'))
      .executeTakeFirstOrThrow();
    const attempts = await this.db
      .selectFrom('webhook_attempts as attempt')
      .select(({ fn }) => fn.sum(ATTEMPT_BYTES).as('bytes'))
      .executeTakeFirstOrThrow();
    return Number(events.bytes ?? 0) + Number(attempts.bytes ?? 0);
  }

  /**
   * Yields deliveries of which some are to go. Those that are too old come apart from those that may have to go for their size: what goes
   * at a time is of one sort.
   */
  async *removables(maxAgeMs: number | null, endedUntilUnixMs: number, nowUnixMs: number): AsyncGenerator<Removable> {
    const waitingUntilUnixMs = Math.min(endedUntilUnixMs, nowUnixMs - Math.max(maxAgeMs ?? 0, WAITING_MS));
    const oldUnixMs = maxAgeMs === null ? 0 : nowUnixMs - maxAgeMs;
    let after: OldDelivery | null = null;
    for (const untilUnixMs of [Math.min(oldUnixMs, endedUntilUnixMs), endedUntilUnixMs]) {
      for (;;) {
        const page: readonly OldDelivery[] = await this.listOld(untilUnixMs, waitingUntilUnixMs, after, PAGE);
        const last = page.at(-1);
        if (last === undefined) break;
        after = last;
        yield {
          count: page.length,
          endedUnixMs: last.createdUnixMs,
          measure: async () => ({ fileCount: 0, sizeBytes: page.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }),
          remove: async () => {
            await this.remove(page);
            return true;
          },
        };
      }
    }
  }

  /**
   * Lists deliveries whose events were made up to then, oldest first.
   * @param waitingUntilUnixMs those that are still to be delivered only if they are as old as this
   * @param after the last one of the page before
   */
  async listOld(
    untilUnixMs: number,
    waitingUntilUnixMs: number,
    after: OldDelivery | null,
    limit: number,
  ): Promise<readonly OldDelivery[]> {
    const rows = await this.db
      .selectFrom('webhook_events as event')
      .select(['event.seq as seq', 'event.created_unix_ms as createdUnixMs', EVENT_BYTES.as('eventBytes')])
      .select(({ selectFrom }) =>
        selectFrom('webhook_attempts as attempt')
          .select(({ fn }) => fn.sum(ATTEMPT_BYTES).as('bytes'))
          .whereRef('attempt.event_id', '=', 'event.id')
          .as('attemptBytes'),
      )
      .where('event.created_unix_ms', '<=', untilUnixMs)
      .where(({ or, eb }) =>
        or([eb('event.state', '<>', 'pending'), eb('event.created_unix_ms', '<=', waitingUntilUnixMs)]),
      )
      .$if(after !== null, (query) =>
        query.where(
          sql<SqlBool>`(event.created_unix_ms, event.seq) > (${after?.createdUnixMs ?? 0}, ${after?.seq ?? 0})`,
        ),
      )
      .orderBy('event.created_unix_ms')
      .orderBy('event.seq')
      .limit(limit)
      .execute();
    return rows.map(({ seq, createdUnixMs, eventBytes, attemptBytes }) => ({
      ...{ seq, createdUnixMs, sizeBytes: Number(eventBytes) + Number(attemptBytes ?? 0) },
    }));
  }

  /** Removes deliveries with their attempts. */
  async remove(deliveries: readonly OldDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const seqs = deliveries.map(({ seq }) => seq);
    await changeWebhooks(this.db, async (transaction) => {
      await transaction
        .deleteFrom('webhook_attempts')
        .where('event_id', 'in', (eb) => eb.selectFrom('webhook_events').select('id').where('seq', 'in', seqs))
        .execute();
      await transaction.deleteFrom('webhook_events').where('seq', 'in', seqs).execute();
    });
  }
}

const EVENT_BYTES = sql<number>`octet_length(event.facts)`;
const ATTEMPT_BYTES = sql<number>`(octet_length(attempt.request_headers) + octet_length(attempt.request_body)
  + octet_length(attempt.response_headers) + octet_length(attempt.response_body) + coalesce(octet_length(attempt.error), 0))`;
