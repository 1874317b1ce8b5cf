import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import { CHAT_KINDS, type WebhookKind, type WebhookSubscription } from './subscription.js';

const VERSION = 'v1';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A sealed value cannot be opened. The message says how to fix it. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
}

/** Seals secrets for the database with AES-256-GCM: the database alone does not reveal them. */
export class SecretBox {
  private readonly keyId: string;

  /** @param key 32 bytes */
  constructor(private readonly key: Uint8Array) {
    if (key.byteLength !== KEY_BYTES) throw new Error(`a key has ${KEY_BYTES} bytes, not ${key.byteLength}`);
    this.keyId = createHash('sha256').update('run-bridge webhook key').update(key).digest('hex').slice(0, 8);
  }

  /** @param owner whose secret it is; it cannot be opened as another one's */
  seal(text: string, owner: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${this.keyId}.${sealed.toString('base64')}`;
  }

  /** @throws SecretBoxError when another key sealed it, or it is damaged. */
  open(sealed: string, owner: string): string {
    const [version, keyId, content = ''] = sealed.split('.');
    if (version !== VERSION || keyId !== this.keyId) {
      throw new SecretBoxError(
        'a secret of this subscription was sealed with another key; set RUN_BRIDGE_WEBHOOK_KEY to the one it was made with (the same for all processes of a database), or rotate its secret and give its URL and headers anew',
      );
    }
    const bytes = Buffer.from(content, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new SecretBoxError(
        'a secret of this subscription is damaged in the database; rotate its secret, and give its URL and headers anew',
        { cause },
      );
    }
  }
}

/** Opens the box on first use, once; after a failure the next use tries again. */
export function boxOpener(readKey: () => Promise<Uint8Array>): () => Promise<SecretBox> {
  const box = lazy(async () => new SecretBox(await readKey()));
  return () => box.get();
}

/** The secrets of a subscription, opened. */
export interface SubscriptionSecrets {
  /** Where it leads. */
  readonly clientUrl: string;
  /** What signs `Authorization`, which takes one signature: the old secret until its time is over. */
  readonly authorizing: string;
  /** What signs Standard Webhooks' header, the newest first. */
  readonly signing: readonly string[];
  /** Custom headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyTemplate: string | null;
  readonly routingKey: string | null;
}

/** @throws SecretBoxError */
export function openSecrets(
  subscription: Pick<
    WebhookSubscription,
    | 'id'
    | 'sealedUrl'
    | 'sealedSecret'
    | 'sealedOldSecret'
    | 'oldSecretUntilUnixMs'
    | 'sealedHeaders'
    | 'sealedTemplate'
    | 'sealedRoutingKey'
  >,
  box: SecretBox,
  nowUnixMs: number,
): SubscriptionSecrets {
  const { id, sealedUrl, sealedSecret, sealedOldSecret, oldSecretUntilUnixMs } = subscription;
  const { sealedTemplate, sealedRoutingKey } = subscription;
  const current = box.open(sealedSecret, id);
  const hasOld = sealedOldSecret !== null && (oldSecretUntilUnixMs ?? 0) > nowUnixMs;
  const old = hasOld ? box.open(sealedOldSecret, id) : null;
  return {
    clientUrl: box.open(sealedUrl, id),
    authorizing: old ?? current,
    signing: old === null ? [current] : [current, old],
    headers: openHeaders(subscription, box),
    bodyTemplate: sealedTemplate === null ? null : box.open(sealedTemplate, id),
    routingKey: sealedRoutingKey === null ? null : box.open(sealedRoutingKey, id),
  };
}

/** Opens custom headers. @throws SecretBoxError */
export function openHeaders(
  { id, sealedHeaders }: Pick<WebhookSubscription, 'id' | 'sealedHeaders'>,
  box: SecretBox,
): Readonly<Record<string, string>> {
  // Only `sealHeaders` makes the text.
  return sealedHeaders === null ? {} : (JSON.parse(box.open(sealedHeaders, id)) as Record<string, string>);
}

/** Seals custom headers for the database; `null` for none. */
export function sealHeaders(headers: Readonly<Record<string, string>>, owner: string, box: SecretBox): string | null {
  return Object.keys(headers).length === 0 ? null : box.seal(JSON.stringify(headers), owner);
}

/** Seals a subscription's URL for the database. @param owner the subscription's id */
export function sealUrl(clientUrl: string, kind: WebhookKind, owner: string, box: SecretBox) {
  return { sealedUrl: box.seal(clientUrl, owner), shownUrl: maskedUrl(clientUrl, kind) };
}

/** Replaces a part of a URL that is not shown. */
export const MASKED_PART = '…';

/**
 * Returns a URL without possible credentials: the path of a chat's URL allows writing to the chat, and queries contain keys. Other
 * endpoints should use headers for credentials.
 */
function maskedUrl(clientUrl: string, kind: WebhookKind): string {
  if (kind === 'email') return clientUrl;
  const { origin, pathname, search } = new URL(clientUrl);
  const isChat = CHAT_KINDS.some((chat) => chat === kind);
  if (isChat) return `${origin}/${MASKED_PART}`;
  return `${origin}${pathname}${search === '' ? '' : `?${MASKED_PART}`}`;
}

const PREFIX = 'whsec_';
const SECRET_BYTES = 24;

/** Makes a new signing secret, in the form of Standard Webhooks. @param randomBytes gives so many random bytes */
export function newWebhookSecret(randomBytes: (count: number) => Uint8Array): string {
  return `${PREFIX}${Buffer.from(randomBytes(SECRET_BYTES)).toString('base64')}`;
}

/**
 * Makes the hosted platform's signature: lowercase hexadecimal HMAC-SHA256 of the body, keyed with the secret as it is written.
 * Goes into `Authorization` without a word before it.
 */
export function platformSignature(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/**
 * Makes the headers of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 * @param secrets each signs; several while one replaces the other
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

/** The file of the key in the data folder. */
export const WEBHOOK_KEY_FILE = 'webhook-key';
const PRIVATE_MODE = 0o600;
const KEY_BYTES = 32;

/**
 * Reads the key that seals secrets of webhooks, from its file, which is created if missing and readable only by this user.
 * @throws an Error that names the file if it is damaged; errors of the file system
 */
export async function readWebhookKeyFile(
  dataFolder: string,
  randomBytes: (count: number) => Uint8Array,
  logger: Logger,
): Promise<Uint8Array> {
  const path = join(dataFolder, WEBHOOK_KEY_FILE);
  try {
    const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64');
    if (key.byteLength !== KEY_BYTES) {
      throw new Error(
        `${path} holds no key of 32 bytes in base64; put the one of a backup there, or remove the file, rotate the secrets of webhooks and give their URLs and headers anew`,
      );
    }
    if (((await stat(path)).mode & 0o077) !== 0) {
      await chmod(path, PRIVATE_MODE);
      logger.warn({ path }, 'the webhook key was readable by other users; corrected its permissions');
    }
    return key;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  // Whole or not there, whenever the program is killed.
  const key = randomBytes(KEY_BYTES);
  const written = `${path}.partial`;
  await rm(written, { force: true });
  await writeFile(written, `${Buffer.from(key).toString('base64')}\n`, { mode: PRIVATE_MODE, flag: 'wx', flush: true });
  await rename(written, path);
  return key;
}
