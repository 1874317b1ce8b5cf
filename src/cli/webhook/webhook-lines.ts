import type { WebhookEvent } from '../../store/webhook/webhook-event.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { dateOf } from '../token/token-lines.js';

/** Subscriptions as a table. */
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
  return table(['ID', 'NAME', 'TYPE', 'STATE', 'LAST', 'DISPATCHED', 'TROUBLE'], rows);
}

/** Events as a table. */
export function eventLines(events: readonly WebhookEvent[]): readonly string[] {
  const rows = events.map((one) => [
    one.id,
    dateOf(one.createdUnixMs),
    one.eventType,
    String(one.facts.runId),
    one.state,
    String(one.attemptCount),
    one.httpStatusCode === null ? '-' : String(one.httpStatusCode),
  ]);
  return table(['ID', 'CREATED', 'EVENT', 'RUN', 'STATE', 'ATTEMPTS', 'LAST'], rows);
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
