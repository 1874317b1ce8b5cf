import type { Kysely, Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import { type ColumnsOf, RowFormat } from '../storage/columns.js';
import { changeState, nextIds } from '../storage/database.js';
import type { StateDb, StateTables } from '../storage/state-tables.js';
import type { RunFacts, WebhookAttempt, WebhookEvent } from './event.js';
import type { WebhookSubscription } from './subscription.js';

/** The rows of subscriptions. */
export const SUBSCRIPTION_ROWS = new RowFormat<WebhookSubscription>({
  ...{ eventTypes: 'json', jobIds: 'json', filter: 'json' },
  ...{ hasRunDetails: 'switch', isPerOwner: 'switch', holdsRepeats: 'switch' },
  ...{ hasAuthorization: 'switch', hasStandardHeaders: 'switch' },
});

/** Reads the active subscriptions of all accounts. @throws StoreError */
export async function activeSubscriptions(db: StateDb): Promise<readonly WebhookSubscription[]> {
  const rows = await db
    .withTables<WebhookTables>()
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('state', '=', 'active')
    .execute();
  return rows.map((row) => SUBSCRIPTION_ROWS.toItem(row));
}

/** An event with what the queue of its subscription goes by. */
export interface QueuedEvent extends WebhookEvent {
  /** The order in which events were made. */
  readonly seq: number;
  readonly jobId: number;
  readonly runId: number;
  /** Whether its first attempt has ended: later ones of its job no longer wait for it. */
  readonly isTried: boolean;
  /** Whether it was requested: then it is delivered whatever the subscription's state. */
  readonly isForced: boolean;
  readonly leaseHolder: string | null;
}

/** The rows of events. */
export const EVENT_ROWS = new RowFormat<QueuedEvent>({ facts: 'json', isTried: 'switch', isForced: 'switch' });

/** The rows of attempts. */
export const ATTEMPT_ROWS = new RowFormat<WebhookAttempt>({ requestHeaders: 'json', responseHeaders: 'json' });

/** The tables of webhooks, as Kysely's types. */
// A type: an interface has no index signature, which `withTables` asks for.
export type WebhookTables = {
  readonly webhook_subscriptions: ColumnsOf<WebhookSubscription>;
  readonly webhook_events: ColumnsOf<QueuedEvent>;
  readonly webhook_attempts: ColumnsOf<WebhookAttempt>;
};

/** A connection to the state, with the tables of webhooks. */
export type WebhookDb = Kysely<StateTables & WebhookTables>;
export type WebhookTransaction = Transaction<StateTables & WebhookTables>;

/** Runs a transaction for changes of subscriptions and events; those of several processes wait for each other. */
export function changeWebhooks<T>(db: StateDb, body: (transaction: WebhookTransaction) => Promise<T>): Promise<T> {
  return changeState(db, (transaction) => body(transaction.withTables<WebhookTables>()), 'webhook');
}

/** An event to be made. */
export interface NewEvent {
  readonly subscription: Pick<WebhookSubscription, 'id' | 'state'>;
  readonly eventType: WebhookEvent['eventType'];
  readonly facts: RunFacts;
  /** How long it waits before its first attempt, in milliseconds; left out for not at all. */
  readonly waitMs?: number;
}

/** Rows written by one statement. */
const ROWS_PER_STATEMENT = 500;

/**
 * Writes new events, in their order. One of a subscription that is not active is skipped: it can be redelivered.
 * @param newKsuid gives unique texts of 27 letters and digits
 */
export async function addEvents(
  transaction: WebhookTransaction,
  events: readonly NewEvent[],
  nowUnixMs: number,
  newKsuid: (nowUnixMs: number) => string,
): Promise<void> {
  if (events.length === 0) return;
  const first = await nextIds(transaction, 'webhook', events.length);
  const rows = events.map(({ subscription, eventType, facts, waitMs = 0 }, index) =>
    EVENT_ROWS.toRow({
      ...{ seq: first + index, id: `wev_${newKsuid(nowUnixMs)}`, subscriptionId: subscription.id, eventType, facts },
      ...{ jobId: facts.jobId, runId: facts.runId, createdUnixMs: nowUnixMs, dueUnixMs: nowUnixMs + waitMs },
      ...{ state: subscription.state === 'active' ? 'pending' : 'skipped', filteredReason: null },
      ...{ isTried: false, isForced: false, roundCount: 0, attemptCount: 0, httpStatusCode: null },
      ...NOT_CLAIMED,
    } satisfies QueuedEvent),
  );
  await insertEvents(transaction, rows);
}

/** Nobody delivers an event. */
export const NOT_CLAIMED = { leaseUntilUnixMs: 0, leaseHolder: null } as const;

export async function insertEvents(
  transaction: WebhookTransaction,
  rows: readonly WebhookTables['webhook_events'][],
): Promise<void> {
  for (const some of slices(rows, ROWS_PER_STATEMENT)) {
    await transaction.insertInto('webhook_events').values(some).execute();
  }
}

/** 2014-05-13T16:53:20Z, from which KSUIDs count their seconds. */
const EPOCH_S = 1_400_000_000;
const PAYLOAD_BYTES = 16;
const LENGTH = 27;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * Makes a K-sortable unique id (https://github.com/segmentio/ksuid): 27 letters and digits, made of a second and 128 random bits.
 * @param randomBytes gives so many random bytes
 */
export function ksuid(nowUnixMs: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = Buffer.alloc(4 + PAYLOAD_BYTES);
  bytes.writeUInt32BE((Math.floor(nowUnixMs / 1_000) - EPOCH_S) >>> 0, 0);
  bytes.set(randomBytes(PAYLOAD_BYTES), 4);
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < LENGTH) {
    text = `${DIGITS[Number(rest % 62n)]}${text}`;
    rest /= 62n;
  }
  return text;
}
