import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { Moment } from './moment.js';

/** Says loudly that a subscription was archived, why and when; nothing for others. */
export function ArchivedNotice({ subscription }: { readonly subscription: WebhookSubscription }) {
  const { state, archiveReason, updatedUnixMs } = subscription;
  if (state !== 'archived') return null;
  return (
    <div class="notice bad" role="alert">
      <p class="strong">
        Archived since <Moment unixMs={updatedUnixMs} />: nothing is sent to it any more.
      </p>
      <p>Why: {archiveReason ?? 'nobody knows'}.</p>
      <p>What happens meanwhile is kept as skipped. Mend the endpoint, reactivate it, and replay what was skipped.</p>
    </div>
  );
}
