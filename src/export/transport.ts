import { MASK } from '../config/mask.js';

/** What became of one attempt to send. */
export type SendResult =
  /** 2xx; `status` is `null` where an exporter does not tell it. `rejectedCount` and `message` come from OTLP's partial success. */
  | {
      readonly kind: 'accepted';
      readonly status: number | null;
      readonly rejectedCount: number;
      readonly message: string;
    }
  /** 408, 429, 5xx, a network or TLS error, no answer in time. `retryAfterMs` when the receiver sent it. */
  | {
      readonly kind: 'retryable';
      readonly status: number | null;
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** Any other answer: sending the same again would not help. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

/** Shorter texts are words rather than secrets. */
const MIN_SECRET_LENGTH = 6;

/** Masks secrets in what a receiver says, which may repeat a credential that it refuses. @param values of headers, and what else is secret */
export function secretMask(values: readonly string[]): (message: string) => string {
  // Of `Bearer abc` also the credential alone; the longest first, so that none is cut by one that it contains.
  const secrets = [...new Set(values.flatMap((value) => [value, value.slice(value.lastIndexOf(' ') + 1)]))]
    .filter(({ length }) => length >= MIN_SECRET_LENGTH)
    .sort((a, b) => b.length - a.length);
  return (message) => secrets.reduce((text, secret) => text.replaceAll(secret, MASK), message);
}

/** The secrets in an endpoint: values of its headers, and of its address its password and what follows the `?`. */
export function secretsOf({ url, headers }: { readonly url: string | URL; readonly headers: HeaderValues }): string[] {
  const { password, search, searchParams } = new URL(url);
  return [...Object.values(headers), password, search, ...searchParams.values()];
}

type HeaderValues = Readonly<Record<string, string>>;

/** Sends bodies to one receiver. One attempt, no retry; never throws for what the other side does. */
export interface Transport {
  /** @param signal aborts the attempt, which is then `retryable`. */
  send(body: Uint8Array, signal: AbortSignal): Promise<SendResult>;
}
