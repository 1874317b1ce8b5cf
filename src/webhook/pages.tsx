import express, { type Request, type Response, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { goneOf } from '../api/permissions.js';
import type { Clock } from '../core/clock.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { type Column, countText, Moment, Pager, pageNumber, ScrollTable } from '../web/page/parts.js';
import type { WebhookEventStore } from './event-store.js';
import { foundSubscription } from './routes.js';
import type { WebhookSubscription } from './subscription.js';
import { LastOutcome, shownAddress, WebhookMark, type WebhookNotice, WebhookPage } from './subscription-page.js';
import type { SubscriptionService } from './subscription-service.js';
import type { SubscriptionStore } from './subscription-store.js';

/** What the pages work with. */
export interface WebhookPageDeps {
  readonly subscriptions: Pick<SubscriptionStore, 'find' | 'list'>;
  readonly events: Pick<WebhookEventStore, 'list' | 'find' | 'attemptsOfEach' | 'replay' | 'countPendingOf'>;
  readonly openService: () => Promise<Pick<SubscriptionService, 'change' | 'test'>>;
  /** Something may be due. */
  readonly wake: () => void;
  /** The program's version. */
  readonly version: string;
  readonly clock: Clock;
}

/** Subscriptions, and events of one, on a page. */
const PAGE_SIZE = 25;
/** The longest form. */
const MAX_FORM_BYTES = 4 * 1024;

const ONE = '/webhooks/:webhookId';

/** `/webhooks` and `/webhooks/{id}`: subscriptions, their delivery logs, and what can be done with them. */
export function webhookPages(deps: WebhookPageDeps): Router {
  const { subscriptions, events, openService, wake, clock, version } = deps;
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });

  router.get('/webhooks', authorize('webhooks:read'), async (request, response) => {
    const caller = callerOf(response);
    const page = pageNumber(request);
    const { items, totalCount } = await subscriptions.list(caller.accountId, partOf(page));
    const pending = await events.countPendingOf(items.map(({ id }) => id));
    const part = { page, pageSize: PAGE_SIZE, totalCount };
    await sendPage(
      response,
      <WebhookListPage caller={caller} subscriptions={items} pending={pending} {...part} version={version} />,
    );
  });
  router.get(ONE, authorize('webhooks:read'), async (request, response) => {
    await show(request, response, await foundSubscription(request, response, deps), noticeIn(request));
  });
  router.post(`${ONE}/reactivate`, authorize('webhooks:write'), async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    await (await openService()).change(accountId, id, { isActive: true });
    response.redirect(303, `/webhooks/${id}?done=reactivated`);
  });
  router.post(`${ONE}/replay`, authorize('webhooks:write'), form, async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    const asked = replayForm(request.body);
    if ('eventId' in asked && (await events.find(accountId, asked.eventId, id)) === undefined) {
      throw ApiError.notFound();
    }
    const scope = 'eventId' in asked ? asked : { ...asked, subscriptionId: id };
    const count = await events.replay(accountId, scope, clock.nowUnixMs());
    if (count > 0) wake();
    response.redirect(303, `/webhooks/${id}?done=replayed&count=${count}`);
  });
  router.post(`${ONE}/test`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { error, httpStatusCode } = await (await openService()).test(subscription, goneOf(response));
    const answer = httpStatusCode === null ? '' : ` It answered ${httpStatusCode}.`;
    const notice: WebhookNotice =
      error === null
        ? { mood: 'good', text: `The test was delivered.${answer}` }
        : { mood: 'bad', text: `The test was not delivered: ${error}.${answer}` };
    await show(request, response, subscription, notice);
  });
  return router;

  async function show(
    request: Request,
    response: Response,
    subscription: WebhookSubscription,
    notice: WebhookNotice | null,
  ): Promise<void> {
    const { id, accountId } = subscription;
    const page = pageNumber(request);
    const { items, totalCount } = await events.list(accountId, id, partOf(page));
    const attempts = await events.attemptsOfEach(items.map((event) => event.id));
    const logged = items.map((event) => ({ event, attempts: attempts.get(event.id) ?? [] }));
    const pending = await events.countPendingOf([id]);
    await sendPage(
      response,
      <WebhookPage
        {...{ caller: callerOf(response), subscription, pendingCount: pending.get(id) ?? 0, events: logged }}
        {...{
          page,
          pageSize: PAGE_SIZE,
          totalCount,
          notice,
          isLive: request.method === 'GET',
          nowUnixMs: clock.nowUnixMs(),
          version,
        }}
      />,
    );
  }
}

function partOf(page: number) {
  return { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
}

/** The result of the form that redirected here, from the address; only known results are shown. */
function noticeIn({ query }: Pick<Request, 'query'>): WebhookNotice | null {
  if (query.done === 'reactivated') return { mood: 'good', text: 'It is active again.' };
  const count = typeof query.count === 'string' && /^\d{1,9}$/.test(query.count) ? Number(query.count) : null;
  if (query.done !== 'replayed' || count === null) return null;
  if (count === 0)
    return { mood: 'bad', text: 'Nothing was to be replayed: nothing failed or was skipped since then.' };
  return { mood: 'good', text: `${countText(count, 'event')} will be delivered again.` };
}

/** What a form asks to be redelivered. */
type ReplayForm = { readonly eventId: string } | { readonly sinceUnixMs: number };

/** Reads the form: an event, or a time in UTC as browsers write it. @throws ApiError 400 */
function replayForm(body: unknown): ReplayForm {
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : []);
  const eventId = fields.get('event_id');
  if (typeof eventId === 'string' && eventId !== '') return { eventId };
  const since = fields.get('since');
  const isTime = typeof since === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/.test(since);
  const sinceUnixMs = isTime ? Date.parse(`${since}Z`) : Number.NaN;
  if (Number.isNaN(sinceUnixMs)) throw new ApiError(400, '"Since" must be a time, for example 2026-01-31T12:00.');
  return { sinceUnixMs };
}

const COLUMNS: readonly Column[] = [
  'Name',
  'State',
  'Last delivery',
  { number: 'Failures in a row' },
  { number: 'Waiting' },
  'Endpoint',
];

/** What the list of subscriptions shows. */
interface WebhookListProps {
  readonly caller: Caller;
  readonly subscriptions: readonly WebhookSubscription[];
  /** Events that wait, by the subscription's id. */
  readonly pending: ReadonlyMap<string, number>;
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  readonly version: string;
}

/** The webhook subscriptions of an account, and how they stand. */
function WebhookListPage({ caller, subscriptions, pending, version, ...part }: WebhookListProps) {
  const archived = subscriptions.filter(({ state }) => state === 'archived');
  return (
    <Layout title="Webhooks" caller={caller} version={version} isLive>
      <h1>Webhooks</h1>
      <div id="live" data-live="5000">
        {archived.length > 0 && (
          <p class="notice bad strong" role="alert">
            {countText(archived.length, 'subscription')} on this page {archived.length === 1 ? 'was' : 'were'} archived:
            nothing is sent there any more.
          </p>
        )}
        {part.totalCount === 0 ? <NoWebhook accountId={caller.accountId} /> : <Table {...{ subscriptions, pending }} />}
        {part.totalCount > part.pageSize && (
          <Pager {...part} noun="subscription" href={(page) => `/webhooks?page=${page}`} words={['Before', 'After']} />
        )}
      </div>
    </Layout>
  );
}

function Table({ subscriptions, pending }: Pick<WebhookListProps, 'subscriptions' | 'pending'>) {
  return (
    <ScrollTable label="Subscriptions, oldest first" columns={COLUMNS}>
      {subscriptions.map((one) => (
        <Row subscription={one} pendingCount={pending.get(one.id) ?? 0} />
      ))}
    </ScrollTable>
  );
}

function Row(props: { readonly subscription: WebhookSubscription; readonly pendingCount: number }) {
  const { subscription, pendingCount } = props;
  const { id, name, kind, state, archiveReason, failedCount, updatedUnixMs } = subscription;
  return (
    <tr>
      <th scope="row" class="name">
        <a href={`/webhooks/${id}`}>{name}</a>
        <span class="sub">{kind}</span>
      </th>
      <td>
        <WebhookMark state={state} isFailing={failedCount > 0} />
        {state === 'archived' && (
          <span class="sub">
            {archiveReason}, <Moment unixMs={updatedUnixMs} />
          </span>
        )}
      </td>
      <td>
        <LastOutcome standing={subscription} />
      </td>
      <td class={failedCount > 0 ? 'number bad' : 'number'}>{failedCount.toLocaleString('en')}</td>
      <td class="number">{pendingCount.toLocaleString('en')}</td>
      <td class="name">{shownAddress(subscription)}</td>
    </tr>
  );
}

function NoWebhook({ accountId }: { readonly accountId: number }) {
  const body = '{"name":"pager","client_url":"https://hooks.example.com/dbt","event_types":["job.run.errored"]}';
  return (
    <section class="empty">
      <h2>No subscriptions yet</h2>
      <p>Subscribe over the API; events go to chats and mail as well:</p>
      <pre class="command" tabindex={0}>
        {`curl -H "Authorization: Token $TOKEN" "$RUN_BRIDGE/api/v3/accounts/${accountId}/webhooks/subscriptions/" -d '${body}'`}
      </pre>
      <p>
        <code>$RUN_BRIDGE</code> is the address of this page without its path.
      </p>
    </section>
  );
}
