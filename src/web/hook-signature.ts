import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Whether a webhook's body was signed with a secret: its `Authorization` header is the HMAC-SHA256 of the body as it came,
 * keyed with the secret, in hexadecimal. Takes as long for a wrong signature as for a right one.
 */
export function isSignedWith(secret: string, body: Uint8Array, authorization: string | undefined): boolean {
  const expected = createHmac('sha256', secret).update(body).digest();
  const isWellFormed = /^[0-9a-f]{64}$/i.test(authorization ?? '');
  const given = isWellFormed ? Buffer.from(authorization ?? '', 'hex') : Buffer.alloc(expected.byteLength);
  return timingSafeEqual(expected, given) && isWellFormed;
}
