import express, { type Request, type Response, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticate.js';
import { goneOf } from '../../api/gone-of.js';
import { foundSubscription } from '../../api/webhook/found-subscription.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { countText } from './count-text.js';
import type { PageDeps } from './page-deps.js';
import { pageNumber } from './page-number.js';
import { replayForm } from './replay-form.js';
import { sendPage } from './send-page.js';
import { WebhookListPage } from './webhook-list-page.js';
import { type WebhookNotice, WebhookPage } from './webhook-page.js';

/** Subscriptions, and events of one, on a page. */
const PAGE_SIZE = 25;
/** The longest form. */
const MAX_FORM_BYTES = 4 * 1024;

const ONE = '/webhooks/:webhookId';

/** `/webhooks` and `/webhooks/{id}`: subscriptions, their delivery logs, and what can be done with them. */
export function webhookRouter(deps: PageDeps): Router {
  const { subscriptions, events, openDesk, wake, clock, version } = deps;
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
    await (await openDesk()).change(accountId, id, { isActive: true });
    response.redirect(303, `/webhooks/${id}?done=reactivated`);
  });
  router.post(`${ONE}/replay`, authorize('webhooks:write'), form, async (request, response) => {
    const { accountId, id } = await foundSubscription(request, response, deps);
    const asked = replayForm(request.body);
    if ('eventId' in asked && (await events.find(accountId, id, asked.eventId)) === undefined) {
      throw ApiError.notFound();
    }
    const scope = 'eventId' in asked ? asked : { ...asked, subscriptionId: id };
    const count = await events.replay(accountId, scope, clock.nowUnixMs());
    if (count > 0) wake();
    response.redirect(303, `/webhooks/${id}?done=replayed&count=${count}`);
  });
  router.post(`${ONE}/test`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { error, httpStatusCode } = await (await openDesk()).test(subscription, goneOf(response));
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

/** What was done just now, as the address says; nobody can make it say anything else. */
function noticeIn({ query }: Pick<Request, 'query'>): WebhookNotice | null {
  if (query.done === 'reactivated') return { mood: 'good', text: 'It is active again.' };
  const count = typeof query.count === 'string' && /^\d{1,9}$/.test(query.count) ? Number(query.count) : null;
  if (query.done !== 'replayed' || count === null) return null;
  if (count === 0)
    return { mood: 'bad', text: 'Nothing was to be replayed: nothing failed or was skipped since then.' };
  return { mood: 'good', text: `${countText(count, 'event')} will be delivered again.` };
}
