import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';

/**
 * Where a subscription leads, without what may be secret: the path of a chat's URL lets whoever has it write there, queries
 * carry keys, and people's addresses are theirs.
 */
export function shownAddress({ kind, clientUrl }: Pick<WebhookSubscription, 'kind' | 'clientUrl'>): string {
  if (kind === 'email') return clientUrl.replace(/^mailto:/i, '').replaceAll(',', ', ');
  if (!URL.canParse(clientUrl)) return '?';
  const { origin, pathname, search } = new URL(clientUrl);
  if (kind !== 'http') return `${origin}/…`;
  return `${origin}${pathname}${search === '' ? '' : '?…'}`;
}
