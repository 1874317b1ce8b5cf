import type { Request, Response } from 'express';
import type { SubscriptionStore } from '../../store/webhook/subscription-store.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { ApiError } from '../api-error.js';
import { callerOf } from '../authenticate.js';
import { may } from '../permissions.js';
import type { WebhookApiDeps } from './webhook-api-deps.js';

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

/** The URL of a subscription as its caller may see it: whole for those who may change it, masked for others. */
export async function shownUrl(
  response: Response,
  subscription: WebhookSubscription,
  { openDesk }: Pick<WebhookApiDeps, 'openDesk'>,
): Promise<string> {
  if (!may(callerOf(response), 'webhooks:write')) return subscription.shownUrl;
  return (await openDesk()).urlOf(subscription);
}
