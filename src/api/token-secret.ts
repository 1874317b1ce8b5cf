import { createHash, randomBytes } from 'node:crypto';

/** The prefix by which secret scanners, and people, recognise a token. */
const PREFIX = 'rbt_';
/** Random bytes of a token: 256 bits cannot be guessed, so one round of SHA-256 protects it. */
const SECRET_BYTES = 32;

const WHOLE = /^rbt_[\w-]{43}$/;

/** A new token as it is shown, once: `rbt_` and 43 letters, digits, `-` and `_`. */
export function newSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64url')}`;
}

/** Whether a text looks like a token of run-bridge. */
export function isSecret(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Whether a text is a token of run-bridge as they are made. */
export function isWholeSecret(text: string): boolean {
  return WHOLE.test(text);
}

/** The stored form of a token: SHA-256, 32 bytes. Accepts any text. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
