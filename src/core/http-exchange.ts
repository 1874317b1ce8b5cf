import http from 'node:http';
import https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from './clock.js';
import { errorCode } from './errors.js';

/** One POST over HTTP/1.1. */
export interface HttpPost {
  /** `http:` or `https:`. */
  readonly url: URL;
  /** Of the URL's protocol; `false` opens a connection for this request alone. */
  readonly agent: http.Agent | false;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Authorities in PEM, in place of the usual ones, for a request without an agent. */
  readonly ca?: string;
  readonly lookup?: LookupFunction;
  /** An open connection to the other side, with TLS if the URL asks for it; in place of the agent. */
  readonly socket?: Duplex;
  /** Checks the address of the connected socket before the first byte of the request. @returns why nothing may be sent there */
  readonly refuse?: (remoteAddress: string) => Error | undefined;
}

/** How long an exchange may take, and how much of an answer is read. */
export interface ExchangeLimits {
  readonly clock: Clock;
  /** From the first byte sent to the last byte received, in milliseconds. */
  readonly timeoutMs: number;
  /** The error for a timeout. */
  readonly timeoutMessage: string;
  readonly signal: AbortSignal;
  readonly maxBodyBytes: number;
}

/** What was answered. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** The body, up to `maxBodyBytes`. */
  readonly body: Uint8Array;
  /** `cut` if it is longer; an error if the rest did not arrive. */
  readonly bodyEnd: 'complete' | 'cut' | Error;
}

/** A reused connection was closed before the first byte of the response: the request may be repeated on a new one. */
export class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError';
}

const STALE_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Sends one request and reads its response. Settles whatever the other side does: a connection that is closed without a response
 * is an error, 101 (which was not requested) is an ordinary response, and a response with a missing body is returned at the
 * timeout. Redirects are not followed, and no proxy is used.
 * @throws StaleConnectionError, or errors of the socket, the signal or `refuse`; only if no response started
 */
export function exchange(
  { url, agent, headers, body, ca, lookup, socket: given, refuse }: HttpPost,
  { clock, timeoutMs, timeoutMessage, signal, maxBodyBytes }: ExchangeLimits,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    let socketOf: { readonly socket: Socket; readonly bytesReadBefore: number } | undefined;
    const options = {
      ...{ method: 'POST', signal, headers: { ...headers, 'content-length': String(body.byteLength) } },
      ...(given === undefined ? { agent } : { createConnection: () => given }),
      ...(ca !== undefined && { ca }),
      ...(lookup !== undefined && { lookup }),
    };
    const request = url.protocol === 'https:' ? https.request(url, options) : http.request(url, options);
    const timer = clock.after(timeoutMs, () => request.destroy(new Error(timeoutMessage)));
    request.on('error', (error) => {
      // Once a response has started, reading it reports the rest.
      if (!isAnswered) reject(isStale(error) ? new StaleConnectionError(error.message, { cause: error }) : error);
    });
    request.once('close', () => {
      timer.cancel();
      if (!isAnswered) reject(new Error('the connection was closed without an answer'));
    });
    request.once('socket', (socket) => {
      socketOf = { socket, bytesReadBefore: socket.bytesRead };
      const check = () => {
        const reason = refuse?.(socket.remoteAddress ?? '');
        if (reason !== undefined) request.destroy(reason);
      };
      if (socket.connecting) socket.once('connect', check);
      else check();
    });
    request.once('upgrade', ({ statusCode = 0, headers }, socket) => {
      isAnswered = true;
      socket.on('error', () => {});
      socket.destroy();
      resolve({ status: statusCode, headers, body: new Uint8Array(0), bodyEnd: 'complete' });
    });
    request.once('response', (response) => {
      isAnswered = true;
      const { statusCode = 0, headers } = response;
      readBounded(response, maxBodyBytes).then((read) => resolve({ status: statusCode, headers, ...read }), reject);
    });
    request.end(body);

    function isStale(error: Error): boolean {
      const hasAnswered = socketOf !== undefined && socketOf.socket.bytesRead > socketOf.bytesReadBefore;
      return request.reusedSocket && !hasAnswered && STALE_CODES.has(errorCode(error) ?? '');
    }
  });
}

/** Why an exchange failed, in words, cut to a length. */
export function exchangeErrorText(error: unknown, maxLength: number): string {
  if (!(error instanceof Error)) return String(error).slice(0, maxLength);
  // A host with several addresses that all fail gives an AggregateError without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return (first instanceof Error ? first.message : error.message).slice(0, maxLength);
}

async function readBounded(
  response: http.IncomingMessage,
  maxBytes: number,
): Promise<Pick<HttpAnswer, 'body' | 'bodyEnd'>> {
  const chunks: Buffer[] = [];
  let length = 0;
  let bodyEnd: HttpAnswer['bodyEnd'] = 'complete';
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      length += chunk.length;
      if (length <= maxBytes) continue;
      bodyEnd = 'cut';
      // The connection is closed with it: the rest is not awaited.
      break;
    }
  } catch (error) {
    bodyEnd = error instanceof Error ? error : new Error(String(error));
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), bodyEnd };
}
