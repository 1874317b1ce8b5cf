import type { Caller } from '../../api/caller.js';
import { may } from '../../api/permissions.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { ArchivedNotice } from './archived-notice.js';
import { Fact } from './fact.js';
import { LastOutcome } from './last-outcome.js';
import { Layout } from './layout.js';
import { Moment } from './moment.js';
import { Pager } from './pager.js';
import { shownAddress } from './shown-address.js';
import { WebhookActions } from './webhook-actions.js';
import { type LoggedEvent, WebhookLog } from './webhook-log.js';
import { WebhookMark } from './webhook-state.js';

/** What came of what somebody just did here. */
export interface WebhookNotice {
  readonly mood: 'good' | 'bad';
  readonly text: string;
}

/** What the page of a subscription shows. */
export interface WebhookPageProps {
  readonly caller: Caller;
  readonly subscription: WebhookSubscription;
  readonly pendingCount: number;
  readonly events: readonly LoggedEvent[];
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  readonly notice: WebhookNotice | null;
  /** Whether its address may be asked for again: not that of what was just done. */
  readonly isLive: boolean;
  readonly nowUnixMs: number;
  readonly version: string;
}

/** One subscription: how it stands, what can be done, and its delivery log. */
export function WebhookPage(props: WebhookPageProps) {
  const { caller, subscription, pendingCount, events, notice, isLive, nowUnixMs, version, ...part } = props;
  const { id, name, state } = subscription;
  const live = isLive ? { 'data-live': '3000' } : {};
  const isWriter = may(caller, 'webhooks:write');
  return (
    <Layout title={name} caller={caller} version={version} isLive={isLive}>
      {notice !== null && (
        <p class={`notice below ${notice.mood}`} role="status">
          {notice.text}
        </p>
      )}
      <div id="standing" {...live}>
        <h1>
          <span class="name">{name}</span> <WebhookMark state={state} isFailing={subscription.failedCount > 0} />
        </h1>
        <ArchivedNotice subscription={subscription} />
        {isWriter && state !== 'active' && (
          <form class="stack" method="post" action={`/webhooks/${id}/reactivate`}>
            <button type="submit">Reactivate</button>
          </form>
        )}
        <Facts subscription={subscription} pendingCount={pendingCount} />
      </div>
      {isWriter && <WebhookActions subscription={subscription} nowUnixMs={nowUnixMs} />}
      <div id="log" {...live}>
        <h2>Delivery log</h2>
        <WebhookLog subscriptionId={id} events={events} isWriter={isWriter} />
        {part.totalCount > 0 && <Pager {...part} noun="event" href={(page) => `/webhooks/${id}?page=${page}`} />}
      </div>
    </Layout>
  );
}

function Facts(props: { readonly subscription: WebhookSubscription; readonly pendingCount: number }) {
  const { subscription, pendingCount } = props;
  const { kind, eventTypes, failedCount, failingSinceUnixMs, pausedUntilUnixMs } = subscription;
  return (
    <dl class="facts">
      <Fact isName name="Endpoint">
        {shownAddress(subscription)} <span class="sub">{kind}</span>
      </Fact>
      <Fact name="Told of">{eventTypes.join(', ')}</Fact>
      <Fact name="Last delivery">
        <LastOutcome standing={subscription} />
      </Fact>
      <Fact name="Failures in a row">
        {failedCount.toLocaleString('en')}
        {failingSinceUnixMs !== null && (
          <span class="sub">
            since <Moment unixMs={failingSinceUnixMs} />
          </span>
        )}
      </Fact>
      <Fact name="Waiting">
        {pendingCount.toLocaleString('en')}
        {pausedUntilUnixMs > 0 && failedCount > 0 && (
          <span class="sub">
            not tried before <Moment unixMs={pausedUntilUnixMs} />
          </span>
        )}
      </Fact>
    </dl>
  );
}
