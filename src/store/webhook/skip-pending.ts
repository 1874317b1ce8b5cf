import type { Transaction } from 'kysely';
import type { StateTables } from '../state-tables.js';

/** What waits for a subscription is not delivered; what somebody asked for stays. @returns how many events that were */
export async function skipPending(transaction: Transaction<StateTables>, subscriptionId: string): Promise<number> {
  const { numUpdatedRows } = await transaction
    .updateTable('webhook_events')
    .set({ state: 'skipped' })
    .where('subscription_id', '=', subscriptionId)
    .where('state', '=', 'pending')
    .where('is_forced', '=', 0)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}
