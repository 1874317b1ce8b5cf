import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';

/** Where a subscription leads, without what may be secret, as people read it. */
export function shownAddress({ shownUrl }: Pick<WebhookSubscription, 'shownUrl'>): string {
  return shownUrl.replace(/^mailto:/i, '').replaceAll(',', ', ');
}
