import type { WebhookKind, WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import type { SecretBox } from './secret-box.js';

/** The secrets of a subscription, opened. */
export interface SubscriptionSecrets {
  /** Where it leads. */
  readonly clientUrl: string;
  /** What signs `Authorization`, which has place for one: the old secret until its time is over. */
  readonly authorizing: string;
  /** What signs Standard Webhooks' header, the newest first. */
  readonly signing: readonly string[];
  /** Headers of one's own. */
  readonly headers: Readonly<Record<string, string>>;
}

/** @throws SecretBoxError */
export function openSecrets(
  subscription: Pick<
    WebhookSubscription,
    'id' | 'sealedUrl' | 'sealedSecret' | 'sealedOldSecret' | 'oldSecretUntilUnixMs' | 'sealedHeaders'
  >,
  box: SecretBox,
  nowUnixMs: number,
): SubscriptionSecrets {
  const { id, sealedUrl, sealedSecret, sealedOldSecret, oldSecretUntilUnixMs, sealedHeaders } = subscription;
  const current = box.open(sealedSecret, id);
  const hasOld = sealedOldSecret !== null && (oldSecretUntilUnixMs ?? 0) > nowUnixMs;
  const old = hasOld ? box.open(sealedOldSecret, id) : null;
  return {
    clientUrl: box.open(sealedUrl, id),
    authorizing: old ?? current,
    signing: old === null ? [current] : [current, old],
    // Only `sealHeaders` makes the text.
    headers: sealedHeaders === null ? {} : (JSON.parse(box.open(sealedHeaders, id)) as Record<string, string>),
  };
}

/** Headers of one's own for the database; `null` for none. */
export function sealHeaders(headers: Readonly<Record<string, string>>, owner: string, box: SecretBox): string | null {
  return Object.keys(headers).length === 0 ? null : box.seal(JSON.stringify(headers), owner);
}

/** A subscription's URL for the database. @param owner the subscription's id */
export function sealUrl(clientUrl: string, kind: WebhookKind, owner: string, box: SecretBox) {
  return { sealedUrl: box.seal(clientUrl, owner), shownUrl: maskedUrl(clientUrl, kind) };
}

/** What stands for a part of a URL that is not shown. */
export const MASKED_PART = '…';

/**
 * A URL without what may be a credential: who has the path of a chat's URL may write there, and queries carry keys. Headers
 * are the place for those of other endpoints.
 */
function maskedUrl(clientUrl: string, kind: WebhookKind): string {
  if (kind === 'email') return clientUrl;
  const { origin, pathname, search } = new URL(clientUrl);
  if (kind !== 'http') return `${origin}/${MASKED_PART}`;
  return `${origin}${pathname}${search === '' ? '' : `?${MASKED_PART}`}`;
}
