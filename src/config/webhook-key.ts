import type { ConfigurationRow } from './configuration.js';
import { type Environment, nonEmpty } from './environment.js';
import { MASK } from './mask.js';

/** The variable that holds the key by which secrets of webhooks are sealed. */
export const WEBHOOK_KEY_NAME = 'RUN_BRIDGE_WEBHOOK_KEY';
const KEY_BYTES = 32;

/** Reads the key; it comes from the environment alone. `null` where it is to be a file in the data folder. */
export function readWebhookKey(environment: Environment): {
  readonly key: Uint8Array | null;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const text = nonEmpty(environment[WEBHOOK_KEY_NAME])?.trim();
  if (text === undefined) return { key: null, problems: [], rows: [] };
  const key = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64');
  const rows = [{ name: 'webhook-key', value: MASK, origin: WEBHOOK_KEY_NAME }];
  if (key.byteLength === KEY_BYTES) return { key, problems: [], rows };
  const problem = `${WEBHOOK_KEY_NAME}: is not 32 bytes in base64 or hexadecimal; make one with: openssl rand -base64 32`;
  return { key: null, problems: [problem], rows };
}
