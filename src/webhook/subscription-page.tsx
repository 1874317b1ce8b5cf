import type { Caller } from '../api/caller.js';
import { may } from '../api/permissions.js';
import { lengthText } from '../core/text.js';
import { Layout } from '../web/page/layout.js';
import { countText, Fact, Mark, Moment, type Mood, Pager, ScrollTable } from '../web/page/parts.js';
import type { WebhookAttempt, WebhookEvent, WebhookEventState } from './event.js';
import { statusWord, type WebhookStanding, type WebhookState, type WebhookSubscription } from './subscription.js';

/** The result of the form that was just sent. */
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
  /** Whether the page reloads itself: not the answer to a form. */
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
      <Fact name="Events">{eventTypes.join(', ')}</Fact>
      <Restrictions subscription={subscription} />
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

/** Which runs a subscription is told of, and how; nothing where it is told of all. */
function Restrictions({ subscription }: { readonly subscription: WebhookSubscription }) {
  const { filter, jobIds, isPerOwner, holdsRepeats } = subscription;
  const { statuses, ...named } = filter;
  const lists: readonly (readonly [string, readonly (string | number)[]])[] = [
    ['jobs', jobIds],
    ['statuses', statuses.map(statusWord)],
    ...Object.entries(named),
  ];
  const parts = [
    ...lists.filter(([, values]) => values.length > 0).map(([name, values]) => `${name}: ${values.join(', ')}`),
    ...(isPerOwner ? ["a message for each owner's failures"] : []),
    ...(holdsRepeats ? ['the same failure once a day'] : []),
  ];
  return parts.length === 0 ? null : <Fact name="Only">{parts.join('; ')}</Fact>;
}

/** The form offers to replay events since so long ago, in milliseconds. */
const OFFERED_AGO_MS = 86_400_000;

/** What can be done with a subscription. */
function WebhookActions(props: { readonly subscription: WebhookSubscription; readonly nowUnixMs: number }) {
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

/** An event and the attempts to deliver it, oldest first. */
export interface LoggedEvent {
  readonly event: WebhookEvent;
  readonly attempts: readonly WebhookAttempt[];
}

/** Events of a subscription, newest first, with the result of each attempt. */
function WebhookLog(props: {
  readonly subscriptionId: string;
  readonly events: readonly LoggedEvent[];
  /** Whether the visitor may replay. */
  readonly isWriter: boolean;
}) {
  const { subscriptionId, events, isWriter } = props;
  if (events.length === 0) {
    return <p class="empty">No events yet, or they are so old that they are not kept any more.</p>;
  }
  return (
    <ScrollTable
      label="Events, newest first"
      columns={['Event', 'State', 'Run', 'Attempts', ...(isWriter ? ['Redeliver'] : [])]}
    >
      {events.map((one) => (
        <Row {...{ subscriptionId, isWriter }} logged={one} />
      ))}
    </ScrollTable>
  );
}

function Row(props: { readonly subscriptionId: string; readonly isWriter: boolean; readonly logged: LoggedEvent }) {
  const { subscriptionId, isWriter, logged } = props;
  const { event, attempts } = logged;
  const { id, eventType, state, facts, createdUnixMs, dueUnixMs, filteredReason } = event;
  return (
    <tr>
      <th scope="row">
        {eventType}
        <span class="sub">
          <Moment unixMs={createdUnixMs} />
        </span>
      </th>
      <td>
        <WebhookMark state={state} />
        {state === 'pending' && attempts.length > 0 && (
          <span class="sub">
            next attempt at <Moment unixMs={dueUnixMs} />
          </span>
        )}
        {filteredReason !== null && <span class="sub text">{filteredReason}</span>}
      </td>
      <td class="name">
        {facts.runId !== 0 && <a href={`/runs/${facts.runId}`}>#{facts.runId}</a>}{' '}
        <span class="sub name">{facts.notice?.about === 'webhook' ? facts.notice.webhookName : facts.jobName}</span>
      </td>
      <td class="roomy">
        <Attempts event={event} attempts={attempts} />
      </td>
      {isWriter && (
        <td>
          {state !== 'pending' && (
            <form method="post" action={`/webhooks/${subscriptionId}/replay`}>
              <input type="hidden" name="event_id" value={id} />
              <button type="submit" aria-label={`Replay ${eventType} of run ${facts.runId}`}>
                Replay
              </button>
            </form>
          )}
        </td>
      )}
    </tr>
  );
}

/** The last one is shown, those before it on demand. */
function Attempts({ event, attempts }: LoggedEvent) {
  const last = attempts.at(-1);
  if (last === undefined) return <>none</>;
  const earlier = attempts.slice(0, -1);
  return (
    <>
      <Attempt attempt={last} />
      {earlier.length > 0 && (
        <details id={`attempts-${event.id}`}>
          <summary>{countText(earlier.length, 'attempt')} before</summary>
          <ul>
            {earlier.map((one) => (
              <li>
                <Attempt attempt={one} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Attempt({ attempt }: { readonly attempt: WebhookAttempt }) {
  const { httpStatusCode, durationMs, startedUnixMs, error, resentAfter } = attempt;
  return (
    <>
      {httpStatusCode === null ? 'no answer' : `answered ${httpStatusCode}`} after {lengthText(durationMs)}
      {error !== null && <span class="sub text">{error}</span>}
      {resentAfter !== null && (
        <span class="sub text">sent twice: its kept connection ended first ({resentAfter})</span>
      )}
      <span class="sub">
        <Moment unixMs={startedUnixMs} />
      </span>
    </>
  );
}

/** Shows that a subscription was archived, with reason and time; nothing for others. */
function ArchivedNotice({ subscription }: { readonly subscription: WebhookSubscription }) {
  const { state, archiveReason, updatedUnixMs } = subscription;
  if (state !== 'archived') return null;
  return (
    <div class="notice bad" role="alert">
      <p class="strong">
        Archived since <Moment unixMs={updatedUnixMs} />: nothing is sent to it any more.
      </p>
      <p>Why: {archiveReason ?? 'unknown'}.</p>
      <p>What happens meanwhile is kept as skipped. Mend the endpoint, reactivate it, and replay what was skipped.</p>
    </div>
  );
}

/** The result of a subscription's last delivery. */
export function LastOutcome({ standing }: { readonly standing: WebhookStanding }) {
  const { dispatchedUnixMs, httpStatusCode, failedCount, lastError } = standing;
  if (dispatchedUnixMs === null) return <>nothing sent yet</>;
  const answered = httpStatusCode === 0 ? '' : `, last answer ${httpStatusCode}`;
  return (
    <>
      {failedCount > 0 ? 'failed' : 'delivered'}
      {answered}
      {lastError !== null && <span class="sub text">{lastError}</span>}
      <span class="sub">
        <Moment unixMs={dispatchedUnixMs} />
      </span>
    </>
  );
}

/** The masked URL of a subscription, as people read it. */
export function shownAddress({ shownUrl }: Pick<WebhookSubscription, 'shownUrl'>): string {
  return shownUrl.replace(/^mailto:/i, '').replaceAll(',', ', ');
}

const MOODS: Readonly<Record<WebhookState | WebhookEventState, Mood>> = {
  active: 'good',
  inactive: 'neutral',
  archived: 'bad',
  delivered: 'good',
  failed: 'bad',
  skipped: 'neutral',
  filtered: 'neutral',
  pending: 'busy',
};

/** Where a subscription or an event stands. */
export function WebhookMark(props: {
  readonly state: WebhookState | WebhookEventState;
  /** Whether the last delivery to it failed. */
  readonly isFailing?: boolean;
}) {
  const { state, isFailing = false } = props;
  if (state === 'active' && isFailing) return <Mark word="active, failing" mood="busy" />;
  return <Mark word={state === 'pending' ? 'waiting' : state} mood={MOODS[state]} />;
}
