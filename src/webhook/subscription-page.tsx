import type { Caller } from '../api/caller.js';
import { may } from '../api/permissions.js';
import { lengthText } from '../core/text.js';
import { Layout } from '../web/page/layout.js';
import { countText, Fact, Mark, Moment, type Mood, Pager, ScrollTable } from '../web/page/parts.js';
import { WEBHOOK_EVENT_STATES, type WebhookAttempt, type WebhookEvent, type WebhookEventState } from './event.js';
import type { ListedEvent } from './event-store.js';
import { CHANGE_WORDS, OCCASION_WORDS, OCCASIONS, whenOf } from './occasions.js';
import { statusWord, type WebhookStanding, type WebhookState, type WebhookSubscription } from './subscription.js';
import { isSigned } from './subscription-form.js';

/** The result of the form that was just sent. */
export interface WebhookNotice {
  readonly mood: 'good' | 'bad';
  readonly text: string;
}

/** Shows the result of a form; nothing where none was sent. */
export function Notice({ notice }: { readonly notice: WebhookNotice | null }) {
  if (notice === null) return null;
  return (
    <p class={`notice below ${notice.mood}`} role="status">
      {notice.text}
    </p>
  );
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
  /** The state that the log is narrowed to; `null` for all. */
  readonly state: WebhookEventState | null;
  readonly notice: WebhookNotice | null;
  /** Whether the page reloads itself: not the answer to a form. */
  readonly isLive: boolean;
  readonly nowUnixMs: number;
  readonly version: string;
}

/** Shows one subscription: how it stands, what can be done, and its delivery log. */
export function WebhookPage(props: WebhookPageProps) {
  const { caller, subscription, pendingCount, events, notice, isLive, nowUnixMs, version, ...part } = props;
  const { id, name, state } = subscription;
  const shown = part.state === null ? '' : `state=${part.state}&`;
  const live = isLive ? { 'data-live': '3000' } : {};
  const isWriter = may(caller, 'webhooks:write');
  return (
    <Layout title={name} caller={caller} version={version} isLive={isLive}>
      <Notice notice={notice} />
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
        <h2>Recent deliveries</h2>
        <nav class="pager" aria-label="States of deliveries">
          <StateLink id={id} state={null} current={part.state} />
          {WEBHOOK_EVENT_STATES.map((one) => (
            <StateLink id={id} state={one} current={part.state} />
          ))}
        </nav>
        {events.length === 0 && (
          <p class="empty">
            {part.state === null
              ? 'No events yet, or they are so old that they are not kept any more.'
              : 'No events of this state.'}
          </p>
        )}
        {events.length > 0 && <DeliveryTable of="webhook" events={events} isWriter={isWriter} />}
        {part.totalCount > 0 && (
          <Pager {...part} noun="event" href={(page) => `/webhooks/${id}?${shown}page=${page}`} />
        )}
      </div>
    </Layout>
  );
}

/** Shows a link to the deliveries of a state. */
function StateLink(props: {
  readonly id: string;
  readonly state: WebhookEventState | null;
  readonly current: WebhookEventState | null;
}) {
  const { id, state, current } = props;
  const word = state === null ? 'all' : stateWord(state);
  if (state === current) return <span aria-current="true">{word}</span>;
  return <a href={state === null ? `/webhooks/${id}` : `/webhooks/${id}?state=${state}`}>{word}</a>;
}

function Facts(props: { readonly subscription: WebhookSubscription; readonly pendingCount: number }) {
  const { subscription, pendingCount } = props;
  const { kind, eventTypes, failedCount, failingSinceUnixMs, pausedUntilUnixMs } = subscription;
  return (
    <dl class="facts">
      <Fact isName name="Endpoint">
        {shownAddress(subscription)} <span class="sub">{kind}</span>
      </Fact>
      <Fact name="When">
        {whenText(subscription)}
        <span class="sub">{eventTypes.join(', ')}</span>
      </Fact>
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

/** Returns when something is sent, as the form says it; what was set over the API in its words. */
function whenText({ eventTypes, filter }: WebhookSubscription): string {
  const { verdicts, transitions } = filter;
  const statuses = filter.statuses.map(statusWord);
  const when = whenOf({ event_types: eventTypes, verdicts, statuses, transitions });
  switch (when.kind) {
    case 'each':
      return OCCASIONS.filter((one) => when.occasions.includes(one))
        .map((one) => OCCASION_WORDS[one])
        .join('; ');
    case 'changes':
      return CHANGE_WORDS;
    case 'kept':
      return [...verdicts, ...statuses, ...transitions].join(', ');
  }
}

/** Shows which runs a subscription is for, and how they are reported; nothing if it is for all. */
function Restrictions({ subscription }: { readonly subscription: WebhookSubscription }) {
  const { filter, jobIds, isPerOwner, holdsRepeats } = subscription;
  const { statuses, verdicts, transitions, ...named } = filter;
  const lists: readonly (readonly [string, readonly (string | number)[]])[] = [
    ['jobs', jobIds],
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

/** Shows what can be done with a subscription. */
function WebhookActions(props: { readonly subscription: WebhookSubscription; readonly nowUnixMs: number }) {
  const { subscription, nowUnixMs } = props;
  const { id, state } = subscription;
  const offered = new Date(nowUnixMs - OFFERED_AGO_MS).toISOString().slice(0, 16);
  return (
    <section class="actions" aria-label="What can be done">
      <a class="button" href={`/webhooks/${id}/change`}>
        Change
      </a>
      <form method="post" action={`/webhooks/${id}/test`}>
        <button type="submit">Send a test</button>
      </form>
      {state === 'active' && (
        <form method="post" action={`/webhooks/${id}/pause`}>
          <button type="submit">Pause</button>
        </form>
      )}
      {isSigned(subscription) && (
        <form method="post" action={`/webhooks/${id}/secret`}>
          <button type="submit">New secret</button>
        </form>
      )}
      <a class="button" href={`/webhooks/${id}/delete`}>
        Delete
      </a>
      <form method="post" action={`/webhooks/${id}/replay`}>
        <label>
          Since (UTC) <input type="datetime-local" name="since" value={offered} required />
        </label>
        <button type="submit">Redeliver all that failed or were skipped</button>
      </form>
    </section>
  );
}

/** An event and the attempts to deliver it, oldest first. */
export interface LoggedEvent {
  readonly event: ListedEvent;
  readonly attempts: readonly WebhookAttempt[];
}

/** On whose page deliveries stand: each then names the other. */
type DeliveriesOf = 'webhook' | 'run';

/** Shows events, newest first, with the result of each attempt. */
export function DeliveryTable(props: {
  readonly of: DeliveriesOf;
  readonly events: readonly LoggedEvent[];
  /** Whether the visitor may replay. */
  readonly isWriter: boolean;
}) {
  const { of, events, isWriter } = props;
  const other = of === 'webhook' ? 'Run' : 'Webhook';
  return (
    <ScrollTable
      label="Events, newest first"
      columns={['Event', 'State', other, 'Attempts', ...(isWriter ? ['Redeliver'] : [])]}
    >
      {events.map((one) => (
        <Row {...{ of, isWriter }} logged={one} />
      ))}
    </ScrollTable>
  );
}

function Row(props: { readonly of: DeliveriesOf; readonly isWriter: boolean; readonly logged: LoggedEvent }) {
  const { of, isWriter, logged } = props;
  const { event, attempts } = logged;
  const { id, subscriptionId, subscriptionName, eventType, state, facts } = event;
  const { createdUnixMs, dueUnixMs, filteredReason } = event;
  return (
    <tr>
      <th scope="row">
        <a href={`/webhooks/${subscriptionId}/events/${id}`}>{eventType}</a>
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
        {of === 'run' ? (
          <a href={`/webhooks/${subscriptionId}`}>{subscriptionName}</a>
        ) : (
          <>
            {facts.runId !== 0 && <a href={`/runs/${facts.runId}`}>#{facts.runId}</a>}{' '}
            <span class="sub name">{facts.notice?.about === 'webhook' ? facts.notice.webhookName : facts.jobName}</span>
          </>
        )}
      </td>
      <td class="roomy">
        <Attempts event={event} attempts={attempts} />
      </td>
      {isWriter && (
        <td>
          {state !== 'pending' && (
            <form method="post" action={`/webhooks/${subscriptionId}/replay`}>
              <input type="hidden" name="event_id" value={id} />
              {of === 'run' && <input type="hidden" name="back" value="run" />}
              <button type="submit" aria-label={`Redeliver ${eventType} of run ${facts.runId} to ${subscriptionName}`}>
                Redeliver
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

/** Shows the result of a subscription's last delivery. */
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

/** Returns the masked URL of a subscription, as people read it. */
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

/** Shows where a subscription or an event stands. */
export function WebhookMark(props: {
  readonly state: WebhookState | WebhookEventState;
  /** Whether the last delivery to it failed. */
  readonly isFailing?: boolean;
}) {
  const { state, isFailing = false } = props;
  if (state === 'active' && isFailing) return <Mark word="active, failing" mood="busy" />;
  return <Mark word={stateWord(state)} mood={MOODS[state]} />;
}

function stateWord(state: WebhookState | WebhookEventState): string {
  return state === 'pending' ? 'waiting' : state;
}

/** Shows one event: what was sent in each attempt, and what was answered. */
export function DeliveryPage(props: {
  readonly caller: Caller;
  readonly subscription: WebhookSubscription;
  readonly event: WebhookEvent;
  readonly attempts: readonly WebhookAttempt[];
  readonly version: string;
}) {
  const { caller, subscription, event, attempts, version } = props;
  const { id, eventType, state, facts, createdUnixMs, filteredReason } = event;
  const latestFirst = [...attempts].reverse();
  return (
    <Layout title={eventType} caller={caller} version={version}>
      <h1>
        {eventType} <WebhookMark state={state} />
      </h1>
      <dl class="facts">
        <Fact isName name="Webhook">
          <a href={`/webhooks/${subscription.id}`}>{subscription.name}</a>
        </Fact>
        {facts.runId !== 0 && (
          <Fact name="Run">
            <a href={`/runs/${facts.runId}`}>#{facts.runId}</a>
          </Fact>
        )}
        <Fact isName name="Event">
          {id}
        </Fact>
        <Fact name="Made">
          <Moment unixMs={createdUnixMs} />
        </Fact>
        {filteredReason !== null && <Fact name="Not sent">{filteredReason}</Fact>}
      </dl>
      {may(caller, 'webhooks:write') && state !== 'pending' && (
        <form class="actions" method="post" action={`/webhooks/${subscription.id}/replay`}>
          <input type="hidden" name="event_id" value={id} />
          <button type="submit">Redeliver</button>
        </form>
      )}
      {attempts.length === 0 && <p class="empty">Nothing was sent yet.</p>}
      {latestFirst.map((attempt) => (
        <section aria-label={`Attempt ${attempt.attemptIndex}`}>
          <h2>Attempt {attempt.attemptIndex}</h2>
          <p>
            <Attempt attempt={attempt} />
          </p>
          <details open={attempt === latestFirst[0]}>
            <summary>Request</summary>
            <Exchange headers={attempt.requestHeaders} body={attempt.requestBody} />
          </details>
          <details open={attempt === latestFirst[0]}>
            <summary>Response</summary>
            <Exchange headers={attempt.responseHeaders} body={attempt.responseBody} />
          </details>
        </section>
      ))}
    </Layout>
  );
}

/** Shows headers and body of a request, or of an answer. */
function Exchange({ headers, body }: { readonly headers: WebhookAttempt['requestHeaders']; readonly body: string }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <>
      <pre tabindex={0}>{lines.length === 0 ? 'No headers.' : lines.join('\n')}</pre>
      <pre tabindex={0}>{body === '' ? 'No body.' : indented(body)}</pre>
    </>
  );
}

/** Returns JSON indented; any other body as it is. */
function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
