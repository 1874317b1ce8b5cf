import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 24;

/** A new signing secret, in the form of Standard Webhooks. @param randomBytes gives so many random bytes */
export function newWebhookSecret(randomBytes: (count: number) => Uint8Array): string {
  return `${PREFIX}${Buffer.from(randomBytes(SECRET_BYTES)).toString('base64')}`;
}

/**
 * The hosted platform's signature: lowercase hexadecimal HMAC-SHA256 of the body, keyed with the secret as it is written.
 * Goes into `Authorization` without a word before it.
 */
export function platformSignature(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/**
 * The headers of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 * @param secrets each signs; several while one takes the other's place
 * @param timestampS when the attempt is made, in Unix seconds
 */
export function standardHeaders(
  id: string,
  timestampS: number,
  body: Uint8Array,
  secrets: readonly string[],
): Readonly<Record<string, string>> {
  const signatures = secrets.map((secret) => {
    const key = secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : secret;
    const digest = createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64');
    return `v1,${digest}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampS), 'webhook-signature': signatures.join(' ') };
}
