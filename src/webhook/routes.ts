import express, { type Request, type RequestHandler, type Response, Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { V3_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success, successList } from '../api/envelope.js';
import { answersWith, envelopeSchema, errorAnswers, jsonAnswer } from '../api/openapi/answers.js';
import { numberOf, type Parameters, refused } from '../api/parameters.js';
import { goneOf, may } from '../api/permissions.js';
import type { Clock } from '../core/clock.js';
import { API_PATH } from '../run/api-path.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import {
  eventDocument,
  eventSchema,
  nativeSubscriptionDocument,
  nativeSubscriptionSchema,
  receiptDocument,
  receiptSchema,
  type ShownSecrets,
  subscriptionDocument,
  subscriptionSchema,
  testSchema,
} from './documents.js';
import type { WebhookEvent } from './event.js';
import { NOT_REPLAYABLE, type ReplayScope, type WebhookEventStore } from './event-store.js';
import {
  bodySchemas,
  changeSubscription,
  createSubscription,
  parseInput,
  previewSchema,
  replaySchema,
  rotationSchema,
} from './input.js';
import type { RunDetailsReader } from './run-details.js';
import { bodyOf, contentTypeOf } from './senders.js';
import type { WebhookSubscription } from './subscription.js';
import type { SubscriptionService } from './subscription-service.js';
import type { SubscriptionStore } from './subscription-store.js';

/** What the routers work with. */
export interface WebhookApiDeps {
  readonly subscriptions: Pick<SubscriptionStore, 'find' | 'list' | 'remove'>;
  readonly events: Pick<WebhookEventStore, 'lastRequest' | 'list' | 'find' | 'attemptsOf' | 'replay'>;
  readonly jobs: Pick<RunCatalog, 'findJobs'>;
  readonly openService: () => Promise<SubscriptionService>;
  /** Something may be due. */
  readonly wake: () => void;
  /** Of the runs in payloads. */
  readonly runDetails: Pick<RunDetailsReader, 'statusMessage' | 'read'>;
  readonly clock: Clock;
}

/** Makes the routers of both APIs. */
export function webhookRouters(deps: WebhookApiDeps): readonly Router[] {
  return [platformRouter(deps), nativeRouter(deps)];
}

const PLATFORM_ALL = `${V3_PATH}/accounts/:accountId/webhooks/subscriptions`;
const PLATFORM_ONE = `${V3_PATH}/accounts/:accountId/webhooks/subscription/:webhookId`;
const PLATFORM_EVENT = `${V3_PATH}/accounts/:accountId/webhooks/event/:eventId`;
const PLATFORM_RECEIPT = `${V3_PATH}/accounts/:accountId/webhooks/receipt/:receiptId`;

/** Serves webhook subscriptions as the hosted platform has them. */
function platformRouter(deps: WebhookApiDeps): Router {
  const { subscriptions, events, openService } = deps;
  const router = Router();
  const json = webhookBody();

  const newSchema = bodySchemas.platform.create;
  addSubscriptionRoutes(
    router,
    { all: PLATFORM_ALL, one: PLATFORM_ONE, json, newSchema, documentOf: subscriptionDocument },
    deps,
  );
  router.put(PLATFORM_ONE, authorize('webhooks:write'), json, async (request, response) => {
    const current = await foundSubscription(request, response, deps);
    const changed = await changeSubscription(parseInput(bodySchemas.platform.change, request.body), current, deps);
    response.json(success(subscriptionDocument(changed, await shownSecrets(response, changed, deps))));
  });
  router.get(`${PLATFORM_ONE}/test`, authorize('webhooks:write'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { error, httpStatusCode, eventId } = await (await openService()).test(subscription, goneOf(response));
    response.json(
      success({
        ...{ verification_error: error, verification_status_code: String(httpStatusCode ?? 0) },
        event_id: eventId,
      }),
    );
  });
  router.get(`${PLATFORM_ONE}/events`, authorize('webhooks:read'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const part = webhookListPart(request.query);
    const { items, totalCount } = await events.list(subscription.accountId, {
      of: { subscriptionId: subscription.id },
      ...part,
    });
    const pagination = { total_count: totalCount, count: items.length };
    const documents: z.input<typeof eventSchema>[] = [];
    // One after the other: each may read a record log.
    for (const one of items) documents.push(await eventDocument(subscription, one, deps));
    response.json(successList(documents, { pagination, filters: part, order_by: null }));
  });
  router.get(`${PLATFORM_ONE}/event/:eventId/receipt`, authorize('webhooks:read'), async (request, response) => {
    const { id } = await foundSubscription(request, response, deps);
    response.json(success(await receiptsOf(await foundEvent(response, request.params.eventId, id))));
  });
  router.get(PLATFORM_EVENT, authorize('webhooks:read'), async (request, response) => {
    const event = await foundEvent(response, request.params.eventId);
    const subscription = await subscriptions.find(callerOf(response).accountId, event.subscriptionId);
    if (subscription === undefined) throw ApiError.notFound();
    response.json(success(await eventDocument(subscription, event, deps)));
  });
  router.get(`${PLATFORM_EVENT}/receipts`, authorize('webhooks:read'), async (request, response) => {
    response.json(success(await receiptsOf(await foundEvent(response, request.params.eventId))));
  });
  router.get(PLATFORM_RECEIPT, authorize('webhooks:read'), async (request, response) => {
    const receiptId = String(request.params.receiptId);
    const receipts = await receiptsOf(await foundEvent(response, receiptId.replace(/\.\d+$/, '')));
    const receipt = receipts.find(({ id }) => id === receiptId);
    if (receipt === undefined) throw ApiError.notFound();
    response.json(success(receipt));
  });
  return router;

  /** @param subscriptionId left out for any of the account @throws ApiError 404 */
  async function foundEvent(response: Response, id: unknown, subscriptionId?: string): Promise<WebhookEvent> {
    const event = await events.find(callerOf(response).accountId, String(id), subscriptionId);
    if (event === undefined) throw ApiError.notFound();
    return event;
  }

  /** Returns one for each attempt, oldest first. */
  async function receiptsOf({ id }: WebhookEvent) {
    return (await events.attemptsOf(id)).map(receiptDocument);
  }
}

const NATIVE_ALL = `${API_PATH}/webhooks`;
const NATIVE_ONE = `${NATIVE_ALL}/:webhookId`;

/** Serves subscriptions with the settings that the hosted platform does not have. */
function nativeRouter(deps: WebhookApiDeps): Router {
  const { subscriptions, events, openService, wake, clock } = deps;
  const router = Router();
  const json = webhookBody();

  const newSchema = bodySchemas.native.create;
  addSubscriptionRoutes(
    router,
    { all: NATIVE_ALL, one: NATIVE_ONE, json, newSchema, documentOf: nativeSubscriptionDocument },
    deps,
  );
  router.post(`${NATIVE_ALL}/replay`, authorize('webhooks:write'), json, async (request, response) => {
    const { accountId } = callerOf(response);
    const scope = replayScope(parseInput(replaySchema, request.body));
    if ('subscriptionId' in scope && (await subscriptions.find(accountId, scope.subscriptionId ?? '')) === undefined) {
      throw ApiError.notFound();
    }
    const count = await events.replay(accountId, scope, clock.nowUnixMs());
    if (count === 0 && 'eventId' in scope) {
      throw new ApiError(404, `There is no event ${scope.eventId} to replay; ${NOT_REPLAYABLE}.`);
    }
    wake();
    response.json(success({ replayed_count: count }));
  });
  router.patch(NATIVE_ONE, authorize('webhooks:write'), json, async (request, response) => {
    const current = await foundSubscription(request, response, deps);
    const changed = await changeSubscription(parseInput(bodySchemas.native.change, request.body), current, deps);
    response.json(success(nativeSubscriptionDocument(changed, await shownSecrets(response, changed, deps))));
  });
  router.post(`${NATIVE_ONE}/secret`, authorize('webhooks:write'), json, async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    const { overlap_seconds: seconds } = parseInput(rotationSchema, request.body);
    const rotated = await (await openService()).rotate(accountId, id, seconds * 1_000);
    if (rotated === undefined) throw ApiError.notFound();
    const { subscription, secret } = rotated;
    const shown = await shownSecrets(response, subscription, deps);
    response.json(success(nativeSubscriptionDocument(subscription, shown, secret)));
  });
  router.delete(`${NATIVE_ONE}/old-secret`, authorize('webhooks:write'), async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    const changed = await (await openService()).endOverlap(accountId, id);
    if (changed === undefined) throw ApiError.notFound();
    response.json(success(nativeSubscriptionDocument(changed, await shownSecrets(response, changed, deps))));
  });
  router.get(`${NATIVE_ONE}/preview`, authorize('webhooks:read'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { eventType, runId } = previewOf(request);
    const service = await openService();
    const event = await service.sample(subscription, eventType, runId);
    if (event === undefined) throw ApiError.notFound();
    const secrets = {
      bodyTemplate: await service.templateOf(subscription),
      headers: await service.headersOf(subscription),
    };
    const body = await bodyOf(subscription, event, secrets, deps.runDetails);
    response.json(success(contentTypeOf(subscription, secrets).includes('json') ? JSON.parse(body) : { body }));
  });
  return router;
}

function replayScope(input: z.output<typeof replaySchema>): ReplayScope {
  if ('event_id' in input) return { eventId: input.event_id };
  const sinceUnixMs = Date.parse(input.since);
  return input.webhook_id === undefined ? { sinceUnixMs } : { sinceUnixMs, subscriptionId: input.webhook_id };
}

function previewOf(request: Request) {
  const { event_type: eventType, run_id: runId } = parseInput(previewSchema, request.query);
  return { eventType, runId: runId === undefined ? null : Number(runId) };
}

/** How the two APIs differ. */
interface SubscriptionRoutes {
  /** Path of the list. */
  readonly all: string;
  /** Path of one, with `:webhookId`. */
  readonly one: string;
  /** Parses bodies. */
  readonly json: RequestHandler;
  readonly newSchema: (typeof bodySchemas)[keyof typeof bodySchemas]['create'];
  /** @param secret where it is shown, which is once */
  readonly documentOf: (subscription: WebhookSubscription, shown: ShownSecrets, secret?: string) => object;
}

/** Adds the routes that both APIs have: list, make, show and remove subscriptions. */
function addSubscriptionRoutes(
  router: Router,
  { all, one, json, newSchema, documentOf }: SubscriptionRoutes,
  deps: WebhookApiDeps,
): void {
  const { subscriptions } = deps;
  router.get(all, authorize('webhooks:read'), async (request, response) => {
    const part = webhookListPart(request.query);
    const { items, totalCount } = await subscriptions.list(callerOf(response).accountId, part);
    const pagination = { total_count: totalCount, count: items.length };
    const documents = await Promise.all(
      items.map(async (found) => documentOf(found, await shownSecrets(response, found, deps))),
    );
    response.json(successList(documents, { pagination, filters: part, order_by: null }));
  });
  router.post(all, authorize('webhooks:write'), json, async (request, response) => {
    const { accountId } = callerOf(response);
    const { subscription, secret } = await createSubscription(parseInput(newSchema, request.body), accountId, deps);
    response.status(201);
    response.json(success(documentOf(subscription, await shownSecrets(response, subscription, deps), secret), 201));
  });
  router.get(one, authorize('webhooks:read'), async (request, response) => {
    const found = await foundSubscription(request, response, deps);
    response.json(success(documentOf(found, await shownSecrets(response, found, deps))));
  });
  router.delete(one, authorize('webhooks:write'), async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    await subscriptions.remove(accountId, id);
    response.json(success({ id }));
  });
}

/** Finds the subscription that a path names. @throws ApiError 404 */
export async function foundSubscription(
  request: Request,
  response: Response,
  { subscriptions }: { readonly subscriptions: Pick<SubscriptionStore, 'find'> },
): Promise<WebhookSubscription> {
  const found = await subscriptions.find(callerOf(response).accountId, String(request.params.webhookId));
  if (found === undefined) throw ApiError.notFound();
  return found;
}

/** Returns what the caller may see of a subscription's secrets. */
export async function shownSecrets(
  response: Response,
  subscription: WebhookSubscription,
  { openService }: Pick<WebhookApiDeps, 'openService'>,
): Promise<ShownSecrets> {
  if (!may(callerOf(response), 'webhooks:write')) return { clientUrl: subscription.shownUrl, bodyTemplate: null };
  const service = await openService();
  return { clientUrl: await service.urlOf(subscription), bodyTemplate: await service.templateOf(subscription) };
}

/** The hosted platform's default. */
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;

/** Reads `limit` (10, at most 100) and `offset` (0). @throws ApiError 400 */
function webhookListPart(parameters: Parameters): { readonly limit: number; readonly offset: number } {
  const limit = numberOf(parameters, 'limit') ?? DEFAULT_LIMIT;
  if (limit < 1) throw refused('limit', 'is less than 1');
  const offset = numberOf(parameters, 'offset') ?? 0;
  if (offset < 0) throw refused('offset', 'is less than 0');
  return { limit: Math.min(limit, MAX_LIMIT), offset };
}

const MAX_BODY_BYTES = 256 * 1024;

/** Parses bodies of requests for webhooks. Clients send them without a type as well. */
function webhookBody(): RequestHandler {
  return express.json({ type: () => true, limit: MAX_BODY_BYTES, strict: false });
}

/** Parameters of lists of webhooks. */
const partParameters = z.object({ limit: z.string().optional(), offset: z.string().optional() });

/** `extra` of lists of webhooks. */
const listExtraSchema = z.object({
  filters: z.object({ limit: z.int(), offset: z.int() }),
  order_by: z.null(),
  pagination: z.object({ count: z.int(), total_count: z.int() }),
});

const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });
const removedSchema = z.object({ id: z.string() });

/** How the two descriptions of the routes that both APIs have differ. */
interface DescribedRoutes {
  readonly all: string;
  readonly one: string;
  readonly tag: string;
  /** What stands in paths before the subscription. */
  readonly account: z.ZodObject | null;
  readonly schema: z.ZodType;
  readonly bodies: (typeof bodySchemas)[keyof typeof bodySchemas];
  readonly listSummary: string;
  readonly newSummary: string;
  readonly change: 'put' | 'patch';
}

/** Describes the routes of `addSubscriptionRoutes`, and the one that changes a subscription. */
function subscriptionPaths(routes: DescribedRoutes): ZodOpenApiPathsObject {
  const { account, schema, bodies } = routes;
  const tags = [routes.tag];
  const ofAll = account === null ? {} : { path: account };
  const errors = account === null ? [] : ([404] as const);
  const requestParams = { path: (account ?? z.object({})).extend({ webhookId: z.string() }) };
  return {
    [described(routes.all)]: {
      get: {
        ...{ tags, summary: routes.listSummary, requestParams: { ...ofAll, query: partParameters } },
        responses: answersWith(z.array(schema), 'A page.', errors, listExtraSchema),
      },
      post: {
        ...{ tags, summary: routes.newSummary, requestBody: body(bodies.create) },
        ...(account !== null && { requestParams: ofAll }),
        responses: {
          201: jsonAnswer(envelopeSchema(schema), 'The subscription, with hmac_secret.'),
          ...errorAnswers(...errors, 413, 415),
        },
      },
    },
    [described(routes.one)]: {
      get: {
        tags,
        summary: 'A subscription',
        requestParams,
        responses: answersWith(schema, 'The subscription.', [404]),
      },
      [routes.change]: {
        ...{ tags, summary: 'Change the given fields', requestParams, requestBody: body(bodies.change) },
        responses: answersWith(schema, 'The subscription.', [404, 413, 415]),
      },
      delete: {
        ...{ tags, summary: 'Remove a subscription with its log', requestParams },
        responses: answersWith(removedSchema, 'Removed.', [404]),
      },
    },
  };
}

/** Spells a path of Express as OpenAPI does. */
function described(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

const account = z.object({ accountId: z.string() });
const ofAccount = account.extend({ webhookId: z.string() });
const PLATFORM_TAG = 'v3: webhooks';
const receiptList = answersWith(z.array(receiptSchema), 'A receipt for each attempt.', [404]);

/** What the hosted platform's API answers. */
const PLATFORM_PATHS: ZodOpenApiPathsObject = {
  ...subscriptionPaths({
    ...{ all: PLATFORM_ALL, one: PLATFORM_ONE, tag: PLATFORM_TAG, account, change: 'put' },
    ...{ schema: subscriptionSchema, bodies: bodySchemas.platform },
    listSummary: 'Webhook subscriptions, the oldest first',
    newSummary: 'Subscribe; the answer alone shows the signing secret',
  }),
  [described(`${PLATFORM_ONE}/test`)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'Send a sample event now, and say what was answered',
      requestParams: { path: ofAccount },
      responses: answersWith(testSchema, 'The result.', [404]),
    },
  },
  [described(`${PLATFORM_ONE}/events`)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'Its events that are kept (of the last 7 days by default), the newest first',
      requestParams: { path: ofAccount, query: partParameters },
      responses: answersWith(z.array(eventSchema), 'A page.', [404], listExtraSchema),
    },
  },
  [described(`${PLATFORM_ONE}/event/:eventId/receipt`)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'The attempts to deliver an event, the oldest first',
      requestParams: { path: ofAccount.extend({ eventId: z.string() }) },
      responses: receiptList,
    },
  },
  [described(PLATFORM_EVENT)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'An event, whichever subscription it is for',
      requestParams: { path: account.extend({ eventId: z.string() }) },
      responses: answersWith(eventSchema, 'The event.', [404]),
    },
  },
  [described(`${PLATFORM_EVENT}/receipts`)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'The attempts to deliver it, the oldest first',
      requestParams: { path: account.extend({ eventId: z.string() }) },
      responses: receiptList,
    },
  },
  [described(PLATFORM_RECEIPT)]: {
    get: {
      tags: [PLATFORM_TAG],
      summary: 'One attempt',
      requestParams: { path: account.extend({ receiptId: z.string() }) },
      responses: answersWith(receiptSchema, 'The receipt.', [404]),
    },
  },
};

const NATIVE_TAG = 'run-bridge: webhooks';
const requestParams = { path: z.object({ webhookId: z.string() }) };

/** What the native API answers. */
const NATIVE_PATHS: ZodOpenApiPathsObject = {
  ...subscriptionPaths({
    ...{ all: NATIVE_ALL, one: NATIVE_ONE, tag: NATIVE_TAG, account: null, change: 'patch' },
    ...{ schema: nativeSubscriptionSchema, bodies: bodySchemas.native },
    listSummary: 'Webhook subscriptions with all their settings, the oldest first',
    newSummary: 'Subscribe, also with a chat or by mail; the answer alone shows the signing secret',
  }),
  [`${NATIVE_ALL}/replay`]: {
    post: {
      tags: [NATIVE_TAG],
      summary: 'Deliver an event again, or all that failed or were skipped since a time',
      requestBody: body(replaySchema),
      responses: answersWith(z.object({ replayed_count: z.int() }), 'How many are due again.', [404, 413, 415]),
    },
  },
  [described(`${NATIVE_ONE}/secret`)]: {
    post: {
      ...{ tags: [NATIVE_TAG], summary: 'A new signing secret, beside the old one for a while', requestParams },
      requestBody: { content: { 'application/json': { schema: rotationSchema } } },
      responses: answersWith(nativeSubscriptionSchema, 'The subscription, with the new hmac_secret.', [404, 413, 415]),
    },
  },
  [described(`${NATIVE_ONE}/old-secret`)]: {
    delete: {
      ...{ tags: [NATIVE_TAG], summary: 'The old secret signs nothing any more', requestParams },
      responses: answersWith(nativeSubscriptionSchema, 'The subscription.', [404]),
    },
  },
  [described(`${NATIVE_ONE}/preview`)]: {
    get: {
      tags: [NATIVE_TAG],
      summary: 'The payload that a run gives',
      requestParams: { ...requestParams, query: previewSchema },
      responses: answersWith(z.looseObject({}), 'The body; as a text in `body` where it is no JSON.', [404]),
    },
  },
};

/** What the routers of webhooks answer. */
export const WEBHOOK_PATHS: ZodOpenApiPathsObject = { ...PLATFORM_PATHS, ...NATIVE_PATHS };
