import { CliError, EXIT, type ExitCode, type Invocation, readAccount, type WithState } from '../cli/command.js';
import { parseDurationMs } from '../config/duration.js';
import { nearestName } from '../config/suggestion.js';
import { alignedRows, dateOf } from '../core/text.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { WebhookEvent } from './event.js';
import { NOT_REPLAYABLE, type ReplayScope, WebhookEventStore } from './event-store.js';
import type { WebhookSubscription } from './subscription.js';
import { SubscriptionStore } from './subscription-store.js';

/** What the actions work on. */
interface Stores {
  readonly subscriptions: SubscriptionStore;
  readonly events: WebhookEventStore;
}

const ACTIONS = ['list', 'events', 'replay'] as const;
/** More of a list is had from the API. */
const MAX_LISTED = 100;
const MAX_SINCE_MS = 7 * 86_400_000;

/** Runs `run-bridge webhook`. @throws CliError, ConfigurationError, StoreError */
export async function runWebhookCommand(invocation: Invocation, withState: WithState): Promise<ExitCode> {
  const { context, operands, flags } = invocation;
  const action = readAction(operands[0] ?? '');
  const id = operands[1];
  const accountId = readAccount(flags.account) ?? FIRST_ACCOUNT_ID;
  const act = actionOf();
  return withState(invocation, 'webhooks', ({ db }) =>
    act({ subscriptions: new SubscriptionStore(db), events: new WebhookEventStore(db) }),
  );

  function actionOf(): (stores: Stores) => Promise<ExitCode> {
    if (action !== 'replay' && (flags.since ?? flags.subscription) !== undefined) {
      throw new CliError(
        EXIT.usage,
        `--since and --subscription belong to run-bridge webhook replay, not to ${action}`,
      );
    }
    switch (action) {
      case 'list':
        if (id !== undefined) throw new CliError(EXIT.usage, `run-bridge webhook list takes no ${JSON.stringify(id)}`);
        return list;
      case 'events': {
        const subscriptionId = readSubscription(id);
        return (stores) => listEvents(stores, subscriptionId);
      }
      case 'replay': {
        const scope = readScope(id, invocation);
        return (stores) => replay(stores, scope);
      }
    }
  }

  async function list({ subscriptions }: Stores): Promise<ExitCode> {
    const { items, totalCount } = await subscriptions.list(accountId, { limit: MAX_LISTED, offset: 0 });
    write(subscriptionLines(items), totalCount);
    return EXIT.ok;
  }

  async function listEvents({ subscriptions, events }: Stores, subscriptionId: string): Promise<ExitCode> {
    if ((await subscriptions.find(accountId, subscriptionId)) === undefined) throw unknown(subscriptionId);
    const query = { of: { subscriptionId }, limit: MAX_LISTED, offset: 0 };
    const { items, totalCount } = await events.list(accountId, query);
    write(eventLines(items), totalCount);
    return EXIT.ok;
  }

  async function replay({ subscriptions, events }: Stores, scope: ReplayScope): Promise<ExitCode> {
    const subscriptionId = 'sinceUnixMs' in scope ? scope.subscriptionId : undefined;
    if (subscriptionId !== undefined && (await subscriptions.find(accountId, subscriptionId)) === undefined) {
      throw unknown(subscriptionId);
    }
    const count = await events.replay(accountId, scope, context.clock.nowUnixMs());
    if (count === 0 && 'eventId' in scope) {
      throw new CliError(EXIT.failed, `there is no event ${scope.eventId} to replay; ${NOT_REPLAYABLE}`);
    }
    const what = count === 1 ? '1 event is' : `${count} events are`;
    context.stderr.write(`${what} due again: the server delivers them, or the next one that is started\n`);
    return EXIT.ok;
  }

  function write(lines: readonly string[], totalCount: number): void {
    for (const line of lines) context.stdout.write(`${line}\n`);
    const rest = totalCount - MAX_LISTED;
    if (rest > 0) context.stderr.write(`and ${rest} more\n`);
  }
}

function unknown(id: string): CliError {
  return new CliError(EXIT.failed, `there is no subscription ${id}; run-bridge webhook list shows all`);
}

function readAction(text: string): (typeof ACTIONS)[number] {
  const action = ACTIONS.find((one) => one === text);
  if (action !== undefined) return action;
  const meant = nearestName(text, ACTIONS);
  const hint = meant === undefined ? `choose ${ACTIONS.join(', ')}` : `did you mean ${meant}?`;
  throw new CliError(EXIT.usage, `webhook ${JSON.stringify(text)} is not a known action; ${hint}`);
}

function readSubscription(id: string | undefined): string {
  if (id !== undefined && /^wsu_\w+$/.test(id)) return id;
  throw new CliError(EXIT.usage, 'no subscription given: give its id, wsu_…, as run-bridge webhook list shows it');
}

function readScope(id: string | undefined, { flags, context }: Invocation): ReplayScope {
  const { since, subscription } = flags;
  if (id !== undefined && /^wev_\w+$/.test(id) && since === undefined) return { eventId: id };
  if (id !== undefined || since === undefined) {
    throw new CliError(
      EXIT.usage,
      'nothing to replay: give the id of an event, wev_…, or --since, for example --since 2h',
    );
  }
  const ageMs = parseDurationMs(since, MAX_SINCE_MS);
  if (ageMs === undefined)
    throw new CliError(EXIT.usage, `--since: ${JSON.stringify(since)} is not a time up to 7d, such as 2h`);
  const sinceUnixMs = context.clock.nowUnixMs() - ageMs;
  return subscription === undefined ? { sinceUnixMs } : { sinceUnixMs, subscriptionId: readSubscription(subscription) };
}

/** Returns subscriptions as a table. */
export function subscriptionLines(subscriptions: readonly WebhookSubscription[]): readonly string[] {
  const rows = subscriptions.map((one) => [
    one.id,
    one.name,
    one.kind,
    one.state,
    one.httpStatusCode === 0 ? '-' : String(one.httpStatusCode),
    one.dispatchedUnixMs === null ? 'never' : dateOf(one.dispatchedUnixMs),
    one.archiveReason ?? (one.failedCount > 0 ? `${one.failedCount} failed in a row` : ''),
  ]);
  return alignedRows([['ID', 'NAME', 'TYPE', 'STATE', 'LAST', 'DISPATCHED', 'TROUBLE'], ...rows]);
}

/** Returns events as a table. */
export function eventLines(events: readonly WebhookEvent[]): readonly string[] {
  const rows = events.map((one) => [
    one.id,
    dateOf(one.createdUnixMs),
    one.eventType,
    String(one.facts.runId),
    one.state,
    String(one.attemptCount),
    one.httpStatusCode === null ? '-' : String(one.httpStatusCode),
    one.filteredReason ?? '',
  ]);
  return alignedRows([['ID', 'CREATED', 'EVENT', 'RUN', 'STATE', 'ATTEMPTS', 'LAST', 'WHY NOT SENT'], ...rows]);
}
