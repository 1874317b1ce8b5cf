import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { type Admin, type BaseOptions, compatibilityPartitioner, type SASLOptions } from '@platformatic/kafka';
import { z } from 'zod';
import type { KafkaConnection, KafkaSaslSettings, KafkaTlsSettings } from '../../config/kafka-settings.js';
import type { Clock } from '../../core/clock.js';
import { reasonOf } from '../../core/errors.js';
import { exchange } from '../../core/http-client.js';
import { RequestError } from '../../otlp/refusal.js';
import { formatScopePath, parseScopePath } from '../../otlp/scope-path.js';
import type { Sender } from '../../record/attributes.js';

/** What the client calls itself in the broker's logs and quotas. */
const CLIENT_ID = 'run-bridge';
/** The header of a message with the number of the account whose the telemetry is. */
const ACCOUNT_HEADER = 'run-bridge-account';
/** The header of a message with the path of its sender's endpoint, which names job, environment and project. */
const SCOPE_HEADER = 'run-bridge-scope';

/** The headers of a message that say who sent it. */
export function headersOf({ accountId, scope }: Sender): Readonly<Record<string, string>> {
  const path = formatScopePath(scope);
  return {
    ...(accountId !== null && { [ACCOUNT_HEADER]: String(accountId) }),
    ...(path !== '' && { [SCOPE_HEADER]: path }),
  };
}

/** Who sent a message, by its headers; what others wrote there that cannot be read is left out. @param header gives the text of one */
export function senderOf(header: (name: string) => string | undefined): Sender {
  const account = header(ACCOUNT_HEADER);
  const accountId = account !== undefined && /^\d{1,15}$/.test(account) ? Number(account) : null;
  try {
    return { accountId, scope: parseScopePath(header(SCOPE_HEADER) ?? '') };
  } catch (error) {
    if (error instanceof RequestError) return { accountId, scope: {} };
    throw error;
  }
}

/**
 * Reads the files for TLS, and says to the client how to reach the brokers.
 * @param signal ends requests for tokens
 * @throws an Error of the file system
 */
export async function connectionOptions(
  { brokers, tls, sasl }: KafkaConnection,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<BaseOptions> {
  const bootstrapBrokers = brokers.map((broker) => {
    const colon = broker.lastIndexOf(':');
    return { host: broker.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(broker.slice(colon + 1)) };
  });
  return {
    clientId: CLIENT_ID,
    bootstrapBrokers,
    ...(tls !== null && {
      tls: await readTls(tls),
      // TLS knows no addresses as names of servers.
      tlsServerName: bootstrapBrokers.every(({ host }) => isIP(host) === 0),
    }),
    ...(sasl !== null && { sasl: saslOptions(sasl, clock, signal) }),
  };
}

async function readTls({
  caFile,
  certFile,
  keyFile,
}: KafkaTlsSettings): Promise<{ ca?: Buffer; cert?: Buffer; key?: Buffer }> {
  return {
    ...(caFile !== null && { ca: await readFile(caFile) }),
    ...(certFile !== null && { cert: await readFile(certFile) }),
    ...(keyFile !== null && { key: await readFile(keyFile) }),
  };
}

function saslOptions(sasl: KafkaSaslSettings, clock: Clock, signal: AbortSignal): SASLOptions {
  if (sasl.mechanism !== 'OAUTHBEARER') {
    const { mechanism, username, password } = sasl;
    return { mechanism, username, password };
  }
  let kept: { readonly token: string; readonly untilMs: number } | undefined;
  return {
    mechanism: sasl.mechanism,
    async token() {
      if (kept === undefined || clock.monotonicMs() >= kept.untilMs) {
        const { access_token: token, expires_in: seconds } = await fetchToken(sasl, clock, signal);
        kept = { token, untilMs: clock.monotonicMs() + seconds * 1_000 * USED_PART };
      }
      return kept.token;
    },
  };
}

/** A token is used for this part of its life, so that none expires on its way. */
const USED_PART = 0.8;
const TOKEN_TIMEOUT_MS = 10_000;
const MAX_TOKEN_BYTES = 64 * 1024;

const tokenSchema = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().default(60) });

/** Asks for a token with the client's id and secret (RFC 6749, 4.4). @throws Error */
async function fetchToken(
  { tokenUrl, clientId, clientSecret, scope }: Extract<KafkaSaslSettings, { readonly mechanism: 'OAUTHBEARER' }>,
  clock: Clock,
  signal: AbortSignal,
): Promise<z.output<typeof tokenSchema>> {
  const form = new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== null && { scope }) });
  const credentials = [clientId, clientSecret].map(encodeURIComponent).join(':');
  const { status, body } = await exchange(
    {
      method: 'POST',
      url: new URL(tokenUrl),
      agent: false,
      headers: {
        authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: Buffer.from(form.toString()),
    },
    {
      signal,
      maxBodyBytes: MAX_TOKEN_BYTES,
      timeout: { clock, ms: TOKEN_TIMEOUT_MS, message: `no answer within ${TOKEN_TIMEOUT_MS} ms` },
    },
  );
  if (status !== 200) throw new Error(`${tokenUrl} answered ${status} when asked for a token`);
  return tokenSchema.parse(JSON.parse(Buffer.from(body).toString('utf8')));
}

/** How many partitions each of the topics has: as the broker says it now, and not as the client remembers it. @throws what the client throws */
export async function partitionCountsOf(
  client: Pick<Admin, 'metadata'>,
  topics: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { topics: found } = await client.metadata({ topics: [...topics], forceUpdate: true });
  return new Map(topics.map((topic) => [topic, found.get(topic)?.partitionsCount ?? 0]));
}

/** The innermost reasons of the client's error, which wraps those of its attempts. */
export function problemOf(error: unknown): string {
  const causes =
    error instanceof AggregateError
      ? error.errors
      : error instanceof Error && error.cause !== undefined
        ? [error.cause]
        : [];
  if (causes.length === 0) return reasonOf(error);
  return [...new Set(causes.map(problemOf))].join('; ');
}

/** Returns the partition of a message with this key, as the producers of Kafka itself choose it. */
export function partitionOf(key: string, partitionCount: number): number {
  return compatibilityPartitioner({ topic: '' }, Buffer.from(key)) % partitionCount;
}
