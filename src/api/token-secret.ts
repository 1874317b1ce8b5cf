import { createHash } from 'node:crypto';

/** How many random bytes a token is made of: nobody guesses 256 bits, so that one round of SHA-256 keeps it. */
export const TOKEN_BYTES = 32;
/** By which secret scanners, and people, know a token. */
const PREFIX = 'rbt_';

/** A token as it is shown, once. @param random `TOKEN_BYTES` of them, from a cryptographic source */
export function tokenOf(random: Uint8Array): string {
  return `${PREFIX}${Buffer.from(random).toString('base64url')}`;
}

/** What is kept of a token: SHA-256, 32 bytes. Takes any text. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
