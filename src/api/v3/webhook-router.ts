import { Router } from 'express';
import { ApiError } from '../api-error.js';
import { V3_PATH } from '../api-router.js';
import { authorize } from '../authenticate.js';
import { success, successList } from '../envelope.js';
import { goneOf } from '../gone-of.js';
import { eventDocument, receiptDocument } from '../webhook/event-document.js';
import { foundSubscription, shownUrl } from '../webhook/found-subscription.js';
import { subscriptionDocument } from '../webhook/subscription-document.js';
import { bodySchemas, parseInput, toDraft } from '../webhook/subscription-input.js';
import { addSubscriptionRoutes } from '../webhook/subscription-routes.js';
import type { WebhookApiDeps } from '../webhook/webhook-api-deps.js';
import { webhookBody } from '../webhook/webhook-body.js';
import { webhookListPart } from '../webhook/webhook-list-part.js';

const ALL = `${V3_PATH}/accounts/:accountId/webhooks/subscriptions`;
const ONE = `${V3_PATH}/accounts/:accountId/webhooks/subscription/:webhookId`;

/** Webhook subscriptions as the hosted platform has them. */
export function webhookRouter(deps: WebhookApiDeps): Router {
  const { events, jobs, openDesk } = deps;
  const router = Router();
  const json = webhookBody();

  const newSchema = bodySchemas.platform.create;
  addSubscriptionRoutes(router, { all: ALL, one: ONE, json, newSchema, documentOf: subscriptionDocument }, deps);
  router.put(ONE, authorize('webhooks:write'), json, async (request, response) => {
    const { id, kind, accountId } = await foundSubscription(request, response, deps);
    const input = parseInput(bodySchemas.platform.change, request.body);
    const changed = await (await openDesk()).change(accountId, id, await toDraft(input, kind, accountId, jobs));
    if (changed === undefined) throw ApiError.notFound();
    response.json(success(subscriptionDocument(changed, await shownUrl(response, changed, deps))));
  });
  router.get(`${ONE}/test`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { error, httpStatusCode, eventId } = await (await openDesk()).test(subscription, goneOf(response));
    response.json(
      success({
        ...{ verification_error: error, verification_status_code: String(httpStatusCode ?? 0) },
        event_id: eventId,
      }),
    );
  });
  router.get(`${ONE}/events`, authorize('webhooks:read'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const part = webhookListPart(request.query);
    const { items, totalCount } = await events.list(subscription.accountId, subscription.id, part);
    const pagination = { total_count: totalCount, count: items.length };
    const documents: Awaited<ReturnType<typeof eventDocument>>[] = [];
    // One after the other: each may read a record log.
    for (const one of items) documents.push(await eventDocument(subscription, one, deps.stories));
    response.json(successList(documents, { pagination, filters: part, order_by: null }));
  });
  router.get(`${ONE}/event/:eventId/receipt`, authorize('webhooks:read'), async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    const event = await events.find(accountId, id, String(request.params.eventId));
    const receipts = event && (await events.attemptsOf(event.id)).map((one) => receiptDocument(id, one));
    const last = receipts?.at(-1);
    if (last === undefined) throw ApiError.notFound();
    response.json(success({ ...last, attempts: receipts }));
  });
  return router;
}
