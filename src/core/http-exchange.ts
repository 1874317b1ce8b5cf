import http from 'node:http';
import https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import type { Clock } from './clock.js';
import { errorCode } from './error-code.js';

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
  /** Looks at the address that the socket is connected to, before a byte of the request is sent. @returns why nothing may be sent there */
  readonly refuse?: (remoteAddress: string) => Error | undefined;
}

/** How long an exchange may take, and how much of an answer is read. */
export interface ExchangeLimits {
  readonly clock: Clock;
  /** From the first byte sent to the last byte received, in milliseconds. */
  readonly timeoutMs: number;
  /** What is said where nothing was answered in that time. */
  readonly timeoutMessage: string;
  readonly signal: AbortSignal;
  readonly maxBodyBytes: number;
}

/** What was answered. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** What came of it, up to `maxBodyBytes`. */
  readonly body: Uint8Array;
  /** `cut` where it is longer than that; an error where the rest did not come. */
  readonly bodyEnd: 'complete' | 'cut' | Error;
}

/** A kept connection was closed before a byte of the answer: the request may be sent once more, on a new one. */
export class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError';
}

const STALE_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Sends one request and reads its answer. Settles whatever the other side does: a connection that is closed without an answer
 * is an error, 101 (which nobody asked for) is an answer like others, and an answer whose body stays away is there when the
 * time is over. Redirects are not followed, and no proxy is used.
 * @throws StaleConnectionError, or what the socket, the signal or `refuse` says; only where no head of an answer came
 */
export function exchange(
  { url, agent, headers, body, ca, lookup, refuse }: HttpPost,
  { clock, timeoutMs, timeoutMessage, signal, maxBodyBytes }: ExchangeLimits,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    let socketOf: { readonly socket: Socket; readonly bytesReadBefore: number } | undefined;
    const options = {
      ...{ method: 'POST', agent, signal, headers: { ...headers, 'content-length': String(body.byteLength) } },
      ...(ca !== undefined && { ca }),
      ...(lookup !== undefined && { lookup }),
    };
    const request = url.protocol === 'https:' ? https.request(url, options) : http.request(url, options);
    const timer = clock.after(timeoutMs, () => request.destroy(new Error(timeoutMessage)));
    request.on('error', (error) => {
      // Where an answer has begun, reading it says what became of the rest.
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
  // A host with several addresses that all fail gives an AggregateError without a message of its own.
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
      // The connection goes with it: the rest is not waited for.
      break;
    }
  } catch (error) {
    bodyEnd = error instanceof Error ? error : new Error(String(error));
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), bodyEnd };
}
