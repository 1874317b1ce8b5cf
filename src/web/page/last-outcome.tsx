import type { WebhookStanding } from '../../store/webhook/webhook-subscription.js';
import { Moment } from './moment.js';

/** What became of a subscription's last delivery. */
export function LastOutcome({ standing }: { readonly standing: WebhookStanding }) {
  const { dispatchedUnixMs, httpStatusCode, failedCount } = standing;
  if (dispatchedUnixMs === null) return <>nothing sent yet</>;
  const answered = httpStatusCode === 0 ? '' : `, last answer ${httpStatusCode}`;
  return (
    <>
      {failedCount > 0 ? 'failed' : 'delivered'}
      {answered}
      <span class="sub">
        <Moment unixMs={dispatchedUnixMs} />
      </span>
    </>
  );
}
