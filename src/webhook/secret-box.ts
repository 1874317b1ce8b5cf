import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const VERSION = 'v1';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What was sealed cannot be opened. The message says what to do. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
}

/** Seals secrets for the database with AES-256-GCM: who has the database alone has none of them. */
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
