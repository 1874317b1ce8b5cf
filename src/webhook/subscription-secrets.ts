import type { WebhookSubscription } from '../store/webhook/webhook-subscription.js';
import type { SecretBox } from './secret-box.js';

/** The secrets of a subscription, opened. */
export interface SubscriptionSecrets {
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
    'id' | 'sealedSecret' | 'sealedOldSecret' | 'oldSecretUntilUnixMs' | 'sealedHeaders'
  >,
  box: SecretBox,
  nowUnixMs: number,
): SubscriptionSecrets {
  const { id, sealedSecret, sealedOldSecret, oldSecretUntilUnixMs, sealedHeaders } = subscription;
  const current = box.open(sealedSecret, id);
  const hasOld = sealedOldSecret !== null && (oldSecretUntilUnixMs ?? 0) > nowUnixMs;
  const old = hasOld ? box.open(sealedOldSecret, id) : null;
  return {
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
