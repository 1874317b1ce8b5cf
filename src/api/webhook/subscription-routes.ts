import type { RequestHandler, Router } from 'express';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { authorize, callerOf } from '../authenticate.js';
import { success, successList } from '../envelope.js';
import { foundSubscription, shownUrl } from './found-subscription.js';
import { type bodySchemas, DRAFT_DEFAULTS, parseInput, toDraft } from './subscription-input.js';
import type { WebhookApiDeps } from './webhook-api-deps.js';
import { webhookListPart } from './webhook-list-part.js';

/** In what the two APIs differ. */
export interface SubscriptionRoutes {
  /** Path of the list. */
  readonly all: string;
  /** Path of one, with `:webhookId`. */
  readonly one: string;
  /** Parses bodies. */
  readonly json: RequestHandler;
  readonly newSchema: (typeof bodySchemas)[keyof typeof bodySchemas]['create'];
  /** @param secret where it is shown, which is once */
  readonly documentOf: (subscription: WebhookSubscription, clientUrl: string, secret?: string) => object;
}

/** Adds to a router what the hosted platform's API and the one of one's own have alike: list, make, show and remove subscriptions. */
export function addSubscriptionRoutes(
  router: Router,
  { all, one, json, newSchema, documentOf }: SubscriptionRoutes,
  deps: WebhookApiDeps,
): void {
  const { subscriptions, jobs, openDesk } = deps;
  router.get(all, authorize('webhooks:read'), async (request, response) => {
    const part = webhookListPart(request.query);
    const { items, totalCount } = await subscriptions.list(callerOf(response).accountId, part);
    const pagination = { total_count: totalCount, count: items.length };
    const documents = await Promise.all(
      items.map(async (found) => documentOf(found, await shownUrl(response, found, deps))),
    );
    response.json(successList(documents, { pagination, filters: part, order_by: null }));
  });
  router.post(all, authorize('webhooks:write'), json, async (request, response) => {
    const { accountId } = callerOf(response);
    const input = parseInput(newSchema, request.body);
    const kind = 'type' in input ? (input.type ?? 'http') : 'http';
    const said = await toDraft(input, kind, accountId, jobs);
    const { clientUrl = '', eventTypes = [], name = '' } = said;
    const draft = { ...DRAFT_DEFAULTS, ...said, clientUrl, eventTypes, name };
    const { subscription, secret } = await (await openDesk()).create(accountId, draft);
    response.status(201).json(success(documentOf(subscription, clientUrl, secret), 201));
  });
  router.get(one, authorize('webhooks:read'), async (request, response) => {
    const found = await foundSubscription(request, response, deps);
    response.json(success(documentOf(found, await shownUrl(response, found, deps))));
  });
  router.delete(one, authorize('webhooks:write'), async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    await subscriptions.remove(accountId, id);
    response.json(success({ id }));
  });
}
