import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';

/** What is offered for the time from which on events are replayed: a day ago, in milliseconds. */
const OFFERED_AGO_MS = 86_400_000;

/** What can be done with a subscription. */
export function WebhookActions(props: { readonly subscription: WebhookSubscription; readonly nowUnixMs: number }) {
  const { subscription, nowUnixMs } = props;
  const { id } = subscription;
  const offered = new Date(nowUnixMs - OFFERED_AGO_MS).toISOString().slice(0, 16);
  return (
    <section class="actions" aria-label="What can be done">
      <form method="post" action={`/webhooks/${id}/test`}>
        <button type="submit">Send a test</button>
      </form>
      <form method="post" action={`/webhooks/${id}/replay`}>
        <label>
          Since (UTC) <input type="datetime-local" name="since" value={offered} required />
        </label>
        <button type="submit">Replay all that failed or were skipped</button>
      </form>
    </section>
  );
}
