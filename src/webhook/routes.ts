import express, { type Request, type RequestHandler, type Response, Router } from 'express';
import type { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { V3_PATH } from '../api/api-router.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success, successList } from '../api/envelope.js';
import { numberOf, type Parameters, refused } from '../api/parameters.js';
import { goneOf, may } from '../api/permissions.js';
import { formatDuration } from '../config/duration.js';
import type { Clock } from '../core/clock.js';
import { API_PATH } from '../run/api-path.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import {
  bodySchemas,
  changeSubscription,
  createSubscription,
  type eventSchema,
  parseInput,
  previewSchema,
  type receiptSchema,
  replaySchema,
  rotationSchema,
  type subscriptionSchema,
} from './api-schemas.js';
import type { WebhookAttempt, WebhookEvent } from './event.js';
import { NOT_REPLAYABLE, type ReplayScope, type WebhookEventStore } from './event-store.js';
import type { RunDetailsReader } from './run-details.js';
import { bodyOf, contentTypeOf, payloadOf } from './senders.js';
import { statusWord, type WebhookSubscription } from './subscription.js';
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

/** The routers of both APIs. */
export function webhookRouters(deps: WebhookApiDeps): readonly Router[] {
  return [platformRouter(deps), nativeRouter(deps)];
}

const PLATFORM_ALL = `${V3_PATH}/accounts/:accountId/webhooks/subscriptions`;
const PLATFORM_ONE = `${V3_PATH}/accounts/:accountId/webhooks/subscription/:webhookId`;
const PLATFORM_EVENT = `${V3_PATH}/accounts/:accountId/webhooks/event/:eventId`;
const PLATFORM_RECEIPT = `${V3_PATH}/accounts/:accountId/webhooks/receipt/:receiptId`;

/** Webhook subscriptions as the hosted platform has them. */
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

  /** One for each attempt, oldest first. */
  async function receiptsOf({ id }: WebhookEvent) {
    return (await events.attemptsOf(id)).map(receiptDocument);
  }
}

const NATIVE_ALL = `${API_PATH}/webhooks`;
const NATIVE_ONE = `${NATIVE_ALL}/:webhookId`;

/** Subscriptions with the settings that the hosted platform does not have. */
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

/**
 * A subscription with the settings that the hosted platform does not have.
 * @param shown as the caller may see it
 * @param secret only right after its creation
 */
function nativeSubscriptionDocument(subscription: WebhookSubscription, shown: ShownSecrets, secret?: string) {
  const { kind, state, filter, pausedUntilUnixMs } = subscription;
  return {
    ...subscriptionDocument(subscription, shown, secret),
    type: kind,
    state,
    filters: { ...filter, statuses: filter.statuses.map(statusWord) },
    run_details: subscription.hasRunDetails,
    per_owner: subscription.isPerOwner,
    hold_repeats: subscription.holdsRepeats,
    has_headers: subscription.sealedHeaders !== null,
    has_routing_key: subscription.sealedRoutingKey !== null,
    body_template: shown.bodyTemplate,
    authorization: subscription.hasAuthorization,
    signature_header: subscription.signatureHeader,
    notify_on_archive: subscription.notifyOnArchive,
    expect: subscription.expectMs === null ? null : `every ${formatDuration(subscription.expectMs)}`,
    standard_headers: subscription.hasStandardHeaders,
    max_per_minute: subscription.maxPerMinute,
    failed_count: subscription.failedCount,
    failing_since: orNull(subscription.failingSinceUnixMs),
    paused_until: pausedUntilUnixMs === 0 ? null : microseconds(pausedUntilUnixMs),
    old_secret_until: orNull(subscription.oldSecretUntilUnixMs),
  };
}

function orNull(unixMs: number | null): string | null {
  return unixMs === null ? null : microseconds(unixMs);
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

/** The subscription that a path names. @throws ApiError 404 */
export async function foundSubscription(
  request: Request,
  response: Response,
  { subscriptions }: { readonly subscriptions: Pick<SubscriptionStore, 'find'> },
): Promise<WebhookSubscription> {
  const found = await subscriptions.find(callerOf(response).accountId, String(request.params.webhookId));
  if (found === undefined) throw ApiError.notFound();
  return found;
}

/** What only callers who may change a subscription see of it. */
interface ShownSecrets {
  /** Masked for others. */
  readonly clientUrl: string;
  /** `null` for others. */
  readonly bodyTemplate: string | null;
}

async function shownSecrets(
  response: Response,
  subscription: WebhookSubscription,
  { openService }: Pick<WebhookApiDeps, 'openService'>,
): Promise<ShownSecrets> {
  if (!may(callerOf(response), 'webhooks:write')) return { clientUrl: subscription.shownUrl, bodyTemplate: null };
  const service = await openService();
  return { clientUrl: await service.urlOf(subscription), bodyTemplate: await service.templateOf(subscription) };
}

/**
 * A subscription as the hosted platform shows it.
 * @param shown as the caller may see it
 * @param secret only right after its creation
 */
function subscriptionDocument(
  subscription: WebhookSubscription,
  shown: ShownSecrets,
  secret?: string,
): z.input<typeof subscriptionSchema> {
  const { id, accountId, name, description, jobIds, eventTypes, state, dispatchedUnixMs } = subscription;
  return {
    id,
    account_identifier: String(accountId),
    account_id: String(accountId),
    name,
    description,
    job_ids: jobIds.map(String),
    event_types: [...eventTypes],
    client_url: shown.clientUrl,
    active: state === 'active',
    archived_reason: subscription.archiveReason,
    // The hosted platform's name of it.
    deactivate_reason: subscription.archiveReason,
    created_at: microseconds(subscription.createdUnixMs),
    updated_at: microseconds(subscription.updatedUnixMs),
    ...(dispatchedUnixMs !== null && { dispatched_at: microseconds(dispatchedUnixMs) }),
    http_status_code: statusText(subscription.httpStatusCode, dispatchedUnixMs !== null),
    last_error: subscription.lastError,
    ...(secret !== undefined && { hmac_secret: secret }),
  };
}

/** An HTTP status as the hosted platform shows it: `0` for something that was never sent, so nothing else may read so. */
function statusText(status: number, isSent: boolean): string {
  return status === 0 && isSent ? '' : String(status);
}

/** Microseconds since 1970, as a text of digits. */
function microseconds(unixMs: number): string {
  return `${unixMs}000`;
}

/** An event in the form of the hosted platform's delivery log: texts only. */
async function eventDocument(
  subscription: WebhookSubscription,
  event: WebhookEvent,
  { events, runDetails }: Pick<WebhookApiDeps, 'events' | 'runDetails'>,
): Promise<z.input<typeof eventSchema>> {
  // What was sent is at hand; making it again may take reading all that is known of the run.
  const isPayload = subscription.kind === 'http' && subscription.sealedTemplate === null;
  const sent = subscription.hasRunDetails && isPayload ? await events.lastRequest(event.id) : undefined;
  const accountId = String(subscription.accountId);
  return {
    id: event.id,
    subscription_id: subscription.id,
    account_identifier: accountId,
    account_id: accountId,
    job_id: String(event.facts.jobId),
    run_id: String(event.facts.runId),
    trigger_event_type: event.eventType,
    payload: sent?.body ?? JSON.stringify(await payloadOf(subscription, event, runDetails)),
    http_status_code: statusText(event.httpStatusCode ?? 0, event.attemptCount > 0),
    state: event.state,
    ...(event.filteredReason !== null && { filtered_reason: event.filteredReason }),
    attempt_count: String(event.attemptCount),
    created_at: microseconds(event.createdUnixMs),
  };
}

/** One attempt as the hosted platform's receipts have it. */
function receiptDocument(attempt: WebhookAttempt): z.input<typeof receiptSchema> {
  return {
    id: `${attempt.eventId}.${attempt.attemptIndex}`,
    event_id: attempt.eventId,
    subscription_id: attempt.subscriptionId,
    dispatched_at: microseconds(attempt.startedUnixMs),
    duration_ms: attempt.durationMs,
    http_status_code: statusText(attempt.httpStatusCode ?? 0, true),
    error_info: attempt.error,
    request_body: attempt.requestBody,
    request_headers: JSON.stringify(attempt.requestHeaders),
    response_headers: JSON.stringify(attempt.responseHeaders),
    response_body: attempt.responseBody,
    resent_after: attempt.resentAfter,
  };
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
