import { type Request, Router } from 'express';
import { z } from 'zod';
import { API_PATH } from '../../run/api-path.js';
import { RUN_STATUS, type RunStatus } from '../../store/run-status.js';
import type { ReplayScope } from '../../store/webhook/event-store.js';
import { WEBHOOK_EVENT_TYPES, type WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { NOT_REPLAYABLE } from '../../webhook/not-replayable.js';
import { payloadOf } from '../../webhook/payload.js';
import { ApiError } from '../api-error.js';
import { authorize, callerOf } from '../authenticate.js';
import { success } from '../envelope.js';
import { foundSubscription, shownUrl } from '../webhook/found-subscription.js';
import { microseconds, subscriptionDocument } from '../webhook/subscription-document.js';
import { bodySchemas, parseInput, toDraft } from '../webhook/subscription-input.js';
import { addSubscriptionRoutes } from '../webhook/subscription-routes.js';
import type { WebhookApiDeps } from '../webhook/webhook-api-deps.js';
import { webhookBody } from '../webhook/webhook-body.js';

const ALL = `${API_PATH}/webhooks`;
const ONE = `${ALL}/:webhookId`;
const MAX_OVERLAP_S = 30 * 86_400;

/** Body of a rotation. */
export const rotationSchema = z.object({
  overlap_seconds: z
    .int()
    .min(0)
    .max(MAX_OVERLAP_S)
    .default(86_400)
    .meta({ description: 'how long the old secret signs as well; a day where nothing is said' }),
});
/** Body of a replay. */
export const replaySchema = z.union(
  [
    z.strictObject({ event_id: z.string() }),
    z.strictObject({
      since: z.iso
        .datetime({ offset: true, error: 'is no time such as 2026-01-31T12:00:00Z' })
        .meta({ description: 'all that failed or were skipped from then on' }),
      webhook_id: z.string().optional(),
    }),
  ],
  'has neither an event_id nor a since alone',
);
/** Parameters of a preview. */
export const previewSchema = z.object({
  event_type: z.enum(WEBHOOK_EVENT_TYPES).default('job.run.completed'),
  run_id: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .meta({ description: 'default: the latest run' }),
});

/** Webhooks with what the hosted platform has no place for. */
export function ownWebhookRouter(deps: WebhookApiDeps): Router {
  const { subscriptions, events, jobs, openDesk, wake, clock } = deps;
  const router = Router();
  const json = webhookBody();

  const newSchema = bodySchemas.own.create;
  addSubscriptionRoutes(router, { all: ALL, one: ONE, json, newSchema, documentOf: ownSubscriptionDocument }, deps);
  router.post(`${ALL}/replay`, authorize('webhooks:write'), json, async (request, response) => {
    const { accountId } = callerOf(response);
    const scope = replayScope(parseInput(replaySchema, request.body));
    if ('subscriptionId' in scope && (await subscriptions.find(accountId, scope.subscriptionId ?? '')) === undefined) {
      throw ApiError.notFound();
    }
    const count = await events.replay(accountId, scope, clock.nowUnixMs());
    if (count === 0 && 'eventId' in scope) {
      throw new ApiError(404, `There is no event ${scope.eventId} that could be replayed; ${NOT_REPLAYABLE}.`);
    }
    wake();
    response.json(success({ replayed_count: count }));
  });
  router.patch(ONE, authorize('webhooks:write'), json, async (request, response) => {
    const { id, accountId, kind } = await foundSubscription(request, response, deps);
    const input = parseInput(bodySchemas.own.change, request.body);
    if (input.type !== undefined && input.type !== kind) {
      throw new ApiError(400, 'type: cannot be changed; make another subscription.');
    }
    const changed = await (await openDesk()).change(accountId, id, await toDraft(input, kind, accountId, jobs));
    if (changed === undefined) throw ApiError.notFound();
    response.json(success(ownSubscriptionDocument(changed, await shownUrl(response, changed, deps))));
  });
  router.post(`${ONE}/secret`, authorize('webhooks:write'), json, async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    const { overlap_seconds: seconds } = parseInput(rotationSchema, request.body);
    const rotated = await (await openDesk()).rotate(accountId, id, seconds * 1_000);
    if (rotated === undefined) throw ApiError.notFound();
    const { subscription, secret } = rotated;
    const url = await shownUrl(response, subscription, deps);
    response.json(success(ownSubscriptionDocument(subscription, url, secret)));
  });
  router.delete(`${ONE}/old-secret`, authorize('webhooks:write'), async (request, response) => {
    const { id, accountId } = await foundSubscription(request, response, deps);
    const changed = await (await openDesk()).endOverlap(accountId, id);
    if (changed === undefined) throw ApiError.notFound();
    response.json(success(ownSubscriptionDocument(changed, await shownUrl(response, changed, deps))));
  });
  router.get(`${ONE}/preview`, authorize('webhooks:read'), async (request, response) => {
    const subscription = await foundSubscription(request, response, deps);
    const { eventType, runId } = previewOf(request);
    const event = await (await openDesk()).sample(subscription, eventType, runId);
    if (event === undefined) throw ApiError.notFound();
    response.json(success(await payloadOf(subscription, event, deps.stories)));
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
 * A subscription with what the hosted platform has no place for.
 * @param clientUrl as the caller may see it
 * @param secret shown where it was made just now
 */
export function ownSubscriptionDocument(subscription: WebhookSubscription, clientUrl: string, secret?: string) {
  const { kind, state, filter, pausedUntilUnixMs } = subscription;
  return {
    ...subscriptionDocument(subscription, clientUrl, secret),
    type: kind,
    state,
    filters: { ...filter, statuses: filter.statuses.map(wordOf) },
    has_headers: subscription.sealedHeaders !== null,
    authorization: subscription.hasAuthorization,
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

function wordOf(status: RunStatus): string {
  if (status === RUN_STATUS.success) return 'success';
  return status === RUN_STATUS.cancelled ? 'cancelled' : 'errored';
}
