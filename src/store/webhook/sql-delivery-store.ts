import { type SqlBool, sql } from 'kysely';
import { changeState } from '../change-state.js';
import type { StateDb } from '../state-tables.js';
import type { DeliveryStore, OldDelivery } from './delivery-store.js';

/** Events of webhooks and their attempts in an SQL database. */
export class SqlDeliveryStore implements DeliveryStore {
  constructor(private readonly db: StateDb) {}

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

  async remove(deliveries: readonly OldDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const seqs = deliveries.map(({ seq }) => seq);
    await changeState(
      this.db,
      async (transaction) => {
        await transaction
          .deleteFrom('webhook_attempts')
          .where('event_id', 'in', (eb) => eb.selectFrom('webhook_events').select('id').where('seq', 'in', seqs))
          .execute();
        await transaction.deleteFrom('webhook_events').where('seq', 'in', seqs).execute();
      },
      'webhook',
    );
  }
}

const EVENT_BYTES = sql<number>`octet_length(event.facts)`;
const ATTEMPT_BYTES = sql<number>`(octet_length(attempt.request_headers) + octet_length(attempt.request_body)
  + octet_length(attempt.response_headers) + octet_length(attempt.response_body) + coalesce(octet_length(attempt.error), 0))`;
