import { parseCookie } from 'cookie';
import express, { type Request, type Response, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { goneOf, may, textRedactor } from '../api/permissions.js';
import type { Clock } from '../core/clock.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { type Column, countText, Moment, Pager, pageNumber, ScrollTable } from '../web/page/parts.js';
import { RunShell, shownRun } from '../web/page/run-shell.js';
import { nativeSubscriptionDocument } from './documents.js';
import { WEBHOOK_EVENT_STATES, type WebhookEventState } from './event.js';
import type { EventQuery, WebhookEventStore } from './event-store.js';
import { bodySchemas, changeSubscription, createSubscription, parseInput } from './input.js';
import { foundSubscription, shownSecrets } from './routes.js';
import type { WebhookSubscription } from './subscription.js';
import {
  DeletePage,
  FormPage,
  type FormValues,
  formValues,
  inputOf,
  isSigned,
  NEW_SUBSCRIPTION,
  SecretPage,
  valuesOf,
} from './subscription-form.js';
import {
  DeliveryPage,
  DeliveryTable,
  LastOutcome,
  type LoggedEvent,
  Notice,
  shownAddress,
  WebhookMark,
  type WebhookNotice,
  WebhookPage,
} from './subscription-page.js';
import type { SubscriptionService } from './subscription-service.js';
import type { SubscriptionStore } from './subscription-store.js';

/** What the pages work with. */
export interface WebhookPageDeps {
  readonly subscriptions: Pick<SubscriptionStore, 'find' | 'list' | 'remove'>;
  readonly events: Pick<WebhookEventStore, 'list' | 'find' | 'attemptsOfEach' | 'replay' | 'countPendingOf'>;
  readonly jobs: Pick<RunCatalog, 'findJobs' | 'listJobs'>;
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf' | 'neighboursOf'>;
  /** The setting: texts for visitors without the right to read artifacts. */
  readonly redaction: RedactionLevel;
  readonly openService: () => Promise<SubscriptionService>;
  /** Something may be due. */
  readonly wake: () => void;
  /** The program's version. */
  readonly version: string;
  readonly clock: Clock;
}

/** Subscriptions, and events of one, on a page. */
const PAGE_SIZE = 25;
/** The longest form; a template of 20,000 characters takes up to 180,000 bytes in one. */
const MAX_FORM_BYTES = 256 * 1024;
/** Jobs that a form offers; more can be named over the API. */
const MAX_OFFERED_JOBS = 100;
/** How long the old secret signs beside a new one. */
const OVERLAP_MS = 86_400_000;
/** When a browser dismissed the notice of archived subscriptions, in Unix milliseconds. */
const DISMISSED_COOKIE = 'run_bridge_webhooks_dismissed';

const ONE = '/webhooks/:webhookId';

/**
 * Serves `/webhooks` and what is below: subscriptions, their delivery logs, and what can be done with them; `/runs/{id}/deliveries`:
 * whom a run notified.
 */
export function webhookPages(deps: WebhookPageDeps): Router {
  const { subscriptions, events, jobs, redaction, openService, wake, clock, version } = deps;
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });

  router.get('/webhooks', authorize('webhooks:read'), async (request, response) => {
    const caller = callerOf(response);
    const page = pageNumber(request);
    const { items, totalCount } = await subscriptions.list(caller.accountId, partOf(page));
    const pending = await events.countPendingOf(items.map(({ id }) => id));
    const part = { page, pageSize: PAGE_SIZE, totalCount };
    const list = { caller, subscriptions: items, pending, dismissedUnixMs: dismissedIn(request), version };
    await sendPage(response, <WebhookListPage {...list} {...part} isDeleted={request.query.done === 'deleted'} />);
  });
  router.post('/webhooks/dismiss', authorize('webhooks:read'), (_request, response) => {
    const options = { httpOnly: true, sameSite: 'strict', path: '/webhooks', maxAge: 365 * 86_400_000 } as const;
    response.cookie(DISMISSED_COOKIE, String(clock.nowUnixMs()), options);
    response.redirect(303, '/webhooks');
  });
  router.get('/webhooks/new', authorize('webhooks:write'), async (_request, response) => {
    await showForm(response, null, NEW_SUBSCRIPTION);
  });
  router.post('/webhooks/new', authorize('webhooks:write'), form, async (request, response) => {
    const caller = callerOf(response);
    const values = formValues(request.body);
    const made = await refusable(response, null, values, async () =>
      createSubscription(parseInput(bodySchemas.native.create, inputOf(values, null)), caller.accountId, deps),
    );
    if (made === undefined) return;
    if (isSigned(made.subscription))
      await sendPage(response, <SecretPage {...{ caller, version }} {...made} isNew />, 201);
    else response.redirect(303, `/webhooks/${made.subscription.id}?done=created`);
  });
  router.get(ONE, authorize('webhooks:read'), async (request, response) => {
    await show(request, response, await foundSubscription(request, response, deps), noticeIn(request));
  });
  router.get(`${ONE}/change`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const secrets = await shownSecrets(response, subscription, deps);
    await showForm(response, subscription, valuesOf(nativeSubscriptionDocument(subscription, secrets)));
  });
  router.post(`${ONE}/change`, authorize('webhooks:write'), form, async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const values = formValues(request.body);
    const changed = await refusable(response, subscription, values, async () =>
      changeSubscription(parseInput(bodySchemas.native.change, inputOf(values, subscription)), subscription, deps),
    );
    if (changed !== undefined) response.redirect(303, `/webhooks/${subscription.id}?done=changed`);
  });
  router.post(`${ONE}/pause`, authorize('webhooks:write'), async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    await (await openService()).change(accountId, id, { isActive: false });
    response.redirect(303, `/webhooks/${id}?done=paused`);
  });
  router.post(`${ONE}/secret`, authorize('webhooks:write'), async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    const rotated = await (await openService()).rotate(accountId, id, OVERLAP_MS);
    if (rotated === undefined) throw ApiError.notFound();
    await sendPage(response, <SecretPage caller={callerOf(response)} version={version} {...rotated} isNew={false} />);
  });
  router.get(`${ONE}/delete`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const pendingCount = (await events.countPendingOf([subscription.id])).get(subscription.id) ?? 0;
    const caller = callerOf(response);
    await sendPage(response, <DeletePage {...{ caller, subscription, pendingCount, version }} />);
  });
  router.post(`${ONE}/delete`, authorize('webhooks:write'), async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    await subscriptions.remove(accountId, id);
    response.redirect(303, '/webhooks?done=deleted');
  });
  router.get(`${ONE}/events/:eventId`, authorize('webhooks:read'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const event = await events.find(subscription.accountId, String(request.params.eventId), subscription.id);
    if (event === undefined) throw ApiError.notFound();
    const attempts = (await events.attemptsOfEach([event.id])).get(event.id) ?? [];
    const caller = callerOf(response);
    await sendPage(response, <DeliveryPage {...{ caller, subscription, event, attempts, version }} />);
  });
  router.post(`${ONE}/reactivate`, authorize('webhooks:write'), async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    await (await openService()).change(accountId, id, { isActive: true });
    response.redirect(303, `/webhooks/${id}?done=reactivated`);
  });
  router.post(`${ONE}/replay`, authorize('webhooks:write'), form, async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    const asked = replayForm(request.body);
    const event = 'eventId' in asked ? await events.find(accountId, asked.eventId, id) : undefined;
    if ('eventId' in asked && event === undefined) throw ApiError.notFound();
    const scope = 'eventId' in asked ? { eventId: asked.eventId } : { ...asked, subscriptionId: id };
    const count = await events.replay(accountId, scope, clock.nowUnixMs());
    if (count > 0) wake();
    const isOfRun = 'eventId' in asked && asked.isOfRun && event !== undefined && event.facts.runId !== 0;
    const page = isOfRun ? `/runs/${event.facts.runId}/deliveries` : `/webhooks/${id}`;
    response.redirect(303, `${page}?done=replayed&count=${count}`);
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
  const ofRun = [authorize('runs:read'), authorize('webhooks:read')];
  router.get('/runs/:runId/deliveries', ...ofRun, async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const page = pageNumber(request);
    const { logged, totalCount } = await listed(caller.accountId, { of: { runId: shown.run.id }, ...partOf(page) });
    const any = totalCount > 0 ? undefined : await subscriptions.list(caller.accountId, { limit: 1, offset: 0 });
    const redactor = textRedactor(caller, redaction);
    const shell = { shown, caller, redactor, version, tab: '/deliveries', nowUnixMs: clock.nowUnixMs() } as const;
    await sendPage(
      response,
      <RunShell {...shell} above={<Notice notice={noticeIn(request)} />}>
        <section id="deliveries" aria-label="Deliveries of webhooks" data-live="3000">
          {totalCount === 0 && (
            <NoDelivery hasWebhooks={any?.totalCount !== 0} isWriter={may(caller, 'webhooks:write')} />
          )}
          {logged.length > 0 && <DeliveryTable of="run" events={logged} isWriter={may(caller, 'webhooks:write')} />}
          {totalCount > PAGE_SIZE && (
            <Pager
              {...{ page, pageSize: PAGE_SIZE, totalCount, noun: 'event' }}
              href={(other) => `/runs/${shown.run.id}/deliveries?page=${other}`}
            />
          )}
        </section>
      </RunShell>,
    );
  });
  return router;

  /** Lists events with the attempts to deliver them. */
  async function listed(accountId: number, query: EventQuery) {
    const { items, totalCount } = await events.list(accountId, query);
    const attempts = await events.attemptsOfEach(items.map((event) => event.id));
    const logged: readonly LoggedEvent[] = items.map((event) => ({ event, attempts: attempts.get(event.id) ?? [] }));
    return { logged, totalCount };
  }

  /** Does what a form asks for; where the API would refuse that, shows the form again with the reason. */
  async function refusable<T>(
    response: Response,
    subscription: WebhookSubscription | null,
    values: FormValues,
    act: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      await showForm(response, subscription, values, error.userMessage);
      return undefined;
    }
  }

  /** @param problem why what was sent was refused */
  async function showForm(
    response: Response,
    subscription: WebhookSubscription | null,
    values: FormValues,
    problem: string | null = null,
  ): Promise<void> {
    const caller = callerOf(response);
    const offered = { orderBy: 'name', isDescending: false, limit: MAX_OFFERED_JOBS, offset: 0 } as const;
    const { items } = await jobs.listJobs(caller.accountId, offered);
    const props = { caller, subscription, values, jobs: items, problem, version };
    await sendPage(response, <FormPage {...props} />, problem === null ? 200 : 400);
  }

  async function show(
    request: Request,
    response: Response,
    subscription: WebhookSubscription,
    notice: WebhookNotice | null,
  ): Promise<void> {
    const { id, accountId } = subscription;
    const page = pageNumber(request);
    const state = stateIn(request);
    const { logged, totalCount } = await listed(accountId, {
      of: { subscriptionId: id },
      ...partOf(page),
      ...(state !== null && { state }),
    });
    const pending = await events.countPendingOf([id]);
    await sendPage(
      response,
      <WebhookPage
        {...{ caller: callerOf(response), subscription, pendingCount: pending.get(id) ?? 0, events: logged }}
        {...{
          page,
          pageSize: PAGE_SIZE,
          totalCount,
          state,
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

/** Returns the state that a delivery log is narrowed to; `null` for all, and for words that are none. */
function stateIn({ query }: Pick<Request, 'query'>): WebhookEventState | null {
  return WEBHOOK_EVENT_STATES.find((one) => one === query.state) ?? null;
}

/** Returns when the browser dismissed the notice of archived subscriptions; 0 for never. */
function dismissedIn({ headers }: Pick<Request, 'headers'>): number {
  const text = parseCookie(headers.cookie ?? '')[DISMISSED_COOKIE] ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

const RESULTS: Readonly<Record<string, string>> = {
  created: 'It was created. Send a test to see whether it arrives.',
  changed: 'Saved.',
  paused: 'It is paused: events are kept as skipped until it is reactivated.',
  reactivated: 'It is active again.',
};

/** Returns the result of the form that redirected here, from the address; only known results are shown. */
function noticeIn({ query }: Pick<Request, 'query'>): WebhookNotice | null {
  const result = typeof query.done === 'string' && Object.hasOwn(RESULTS, query.done) ? RESULTS[query.done] : undefined;
  if (result !== undefined) return { mood: 'good', text: result };
  const count = typeof query.count === 'string' && /^\d{1,9}$/.test(query.count) ? Number(query.count) : null;
  if (query.done !== 'replayed' || count === null) return null;
  if (count === 0)
    return { mood: 'bad', text: 'Nothing was to be replayed: nothing failed or was skipped since then.' };
  return { mood: 'good', text: `${countText(count, 'event')} will be delivered again.` };
}

/** What a form asks to be redelivered. */
type ReplayForm =
  /** `isOfRun`: the form stands on the page of its run. */
  { readonly eventId: string; readonly isOfRun: boolean } | { readonly sinceUnixMs: number };

/** Reads the form: an event, or a time in UTC as browsers write it. @throws ApiError 400 */
function replayForm(body: unknown): ReplayForm {
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : []);
  const eventId = fields.get('event_id');
  if (typeof eventId === 'string' && eventId !== '') return { eventId, isOfRun: fields.get('back') === 'run' };
  const since = fields.get('since');
  const isTime = typeof since === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/.test(since);
  const sinceUnixMs = isTime ? Date.parse(`${since}Z`) : Number.NaN;
  if (Number.isNaN(sinceUnixMs)) throw new ApiError(400, '"Since" must be a time, for example 2026-01-31T12:00.');
  return { sinceUnixMs };
}

/** Says why a run notified nobody. */
function NoDelivery({ hasWebhooks, isWriter }: { readonly hasWebhooks: boolean; readonly isWriter: boolean }) {
  return (
    <p class="empty">
      {hasWebhooks ? (
        <>
          No <a href="/webhooks">webhook</a> asked for this run's events, or they are so old that they are not kept any
          more.
        </>
      ) : (
        'No webhooks yet.'
      )}{' '}
      {isWriter ? (
        <>
          <a href="/webhooks/new">Create one</a> to be notified when a run fails: by a chat, by mail, or over HTTP.
        </>
      ) : (
        'Somebody who may write webhooks can create one.'
      )}
    </p>
  );
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
  /** Those archived before are not announced. */
  readonly dismissedUnixMs: number;
  /** Whether one was just deleted. */
  readonly isDeleted: boolean;
  readonly version: string;
}

/** Shows the webhook subscriptions of an account, and how they stand. */
function WebhookListPage({ caller, subscriptions, pending, version, ...part }: WebhookListProps) {
  const archived = subscriptions.filter(
    ({ state, updatedUnixMs }) => state === 'archived' && updatedUnixMs > part.dismissedUnixMs,
  );
  const isWriter = may(caller, 'webhooks:write');
  return (
    <Layout title="Webhooks" caller={caller} version={version} isLive>
      <h1>Webhooks</h1>
      {part.isDeleted && (
        <p class="notice good below" role="status">
          It was deleted.
        </p>
      )}
      {archived.length > 0 && (
        <div class="notice bad" role="alert">
          <form method="post" action="/webhooks/dismiss">
            <span class="strong">
              {countText(archived.length, 'subscription')} on this page {archived.length === 1 ? 'was' : 'were'}{' '}
              archived: nothing is sent there any more.
            </span>{' '}
            <button type="submit" class="quiet">
              Dismiss
            </button>
          </form>
        </div>
      )}
      {isWriter && part.totalCount > 0 && (
        <p>
          <a class="button" href="/webhooks/new">
            New webhook
          </a>
        </p>
      )}
      <div id="live" data-live="5000">
        {part.totalCount === 0 ? (
          <NoWebhook accountId={caller.accountId} isWriter={isWriter} />
        ) : (
          <Table {...{ subscriptions, pending }} />
        )}
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
          <span class="sub" title="Mend the endpoint, then reactivate it on its page.">
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

function NoWebhook({ accountId, isWriter }: { readonly accountId: number; readonly isWriter: boolean }) {
  const body = '{"name":"pager","client_url":"https://hooks.example.com/dbt","event_types":["job.run.errored"]}';
  return (
    <section class="empty">
      <p>
        No webhooks yet.{' '}
        {isWriter ? (
          <>
            <a href="/webhooks/new">Create one</a> to be notified when a run fails: by a chat, by mail, or over HTTP.
          </>
        ) : (
          'Somebody who may write webhooks can create one.'
        )}
      </p>
      <details>
        <summary>Over the API</summary>
        <pre class="command" tabindex={0}>
          {`curl -H "Authorization: Token $TOKEN" "$RUN_BRIDGE/api/v3/accounts/${accountId}/webhooks/subscriptions/" -d '${body}'`}
        </pre>
        <p>
          <code>$RUN_BRIDGE</code> is the address of this page without its path.
        </p>
      </details>
    </section>
  );
}
