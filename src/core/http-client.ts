import http from 'node:http';
import https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { type Duplex, pipeline, Readable } from 'node:stream';
import type { Clock } from './clock.js';
import { errorCode } from './errors.js';

/** A body that is produced while it is sent. */
export interface StreamedBody {
  readonly content: AsyncIterable<Uint8Array>;
  /** The announced length; sending fails if `content` has fewer or more bytes. */
  readonly sizeBytes: number;
}

/** One request over HTTP/1.1. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `http:` or `https:`. */
  readonly url: URL;
  /** The agent for the URL's protocol; `false` opens a connection for this request alone. Default: the keep-alive connections of the whole process. */
  readonly agent?: http.Agent | false;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | StreamedBody;
  /** Certificate authorities in PEM that replace the default ones, for a request without an agent. */
  readonly ca?: string;
  readonly lookup?: LookupFunction;
  /** An open connection to use instead of the agent, with TLS if the URL asks for it. */
  readonly socket?: Duplex;
  /** Checks the address of the connected socket before the first byte is sent. @returns the error to fail with if nothing may be sent there */
  readonly refuse?: (remoteAddress: string) => Error | undefined;
  /**
   * Allows the request to be sent again on a new connection if a reused one ended before the first byte of the response: the other side may have closed it before it read the request. Called before
   * the resend; not possible with a streamed body.
   */
  readonly onStale?: (error: StaleConnectionError) => void;
}

/** How long an exchange may take, and how much of the response body is read. */
export interface ExchangeLimits {
  readonly signal: AbortSignal;
  readonly maxBodyBytes: number;
  /** The time from the first byte sent to the last byte received; omitted if the signal limits it. */
  readonly timeout?: { readonly clock: Clock; readonly ms: number; readonly message: string };
}

/** A response whose head has arrived. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** The bytes of the body; fails if the rest does not arrive. A caller that stops reading closes the connection. */
  readonly body: Readable;
}

/** A response with its body. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** The body, up to `maxBodyBytes`. */
  readonly body: Uint8Array;
  /** `cut` if the body is longer than `maxBodyBytes`; an error if the rest did not arrive. */
  readonly bodyEnd: 'complete' | 'cut' | Error;
  /** Whether the request was written completely, so that nothing reads its body any more. */
  readonly isSent: boolean;
}

/** A reused connection was closed before the first byte of the response; the request may be repeated on a new one. */
export class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError';
}

const STALE_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Sends one request and reads its response. Settles whatever the other side does: a connection closed without a response is an error, 101 (which was not requested) is an ordinary response, and a
 * response whose body does not arrive is returned at the timeout. Redirects are not followed, and no proxy is used.
 * @throws StaleConnectionError, or errors of the socket, the signal, the streamed body or `refuse`; only if no response started
 */
export async function exchange(
  request: HttpRequest,
  { signal, maxBodyBytes, timeout }: ExchangeLimits,
): Promise<HttpAnswer> {
  const sending: Sending = {};
  const timer = timeout?.clock.after(timeout.ms, () => sending.request?.destroy(new Error(timeout.message)));
  try {
    const { status, headers, body } = await send(request, signal, sending);
    const read = await readBounded(body, maxBodyBytes);
    return { status, headers, ...read, isSent: sending.request?.writableFinished === true };
  } finally {
    timer?.cancel();
    // A streamed body that the other side did not read to its end is not sent on.
    if (isStreamed(request.body) && sending.request?.writableFinished === false) sending.request.destroy();
  }
}

/**
 * Sends one request and resolves when the head of its response has arrived, for bodies that are not read into memory.
 * @param signal ends the request and the response
 * @throws as `exchange`
 */
export function openExchange(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
  return send(request, signal, {});
}

/** Refers to the request in progress. */
interface Sending {
  request?: http.ClientRequest;
}

async function send(request: HttpRequest, signal: AbortSignal, sending: Sending): Promise<HttpResponse> {
  try {
    return await sendOnce(request, signal, sending);
  } catch (error) {
    const { onStale, body } = request;
    const isResent = error instanceof StaleConnectionError && onStale !== undefined && !isStreamed(body);
    if (!isResent || signal.aborted) throw error;
    onStale(error);
    return await sendOnce({ ...request, agent: false }, signal, sending);
  }
}

function sendOnce(
  { method, url, agent, headers, body, ca, lookup, socket: given, refuse }: HttpRequest,
  signal: AbortSignal,
  sending: Sending,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    let socketOf: { readonly socket: Socket; readonly bytesReadBefore: number } | undefined;
    const length = body === undefined ? undefined : isStreamed(body) ? body.sizeBytes : body.byteLength;
    const options = {
      method,
      headers: {
        'user-agent': 'run-bridge',
        ...headers,
        ...(length !== undefined && { 'content-length': String(length) }),
      },
      ...(given !== undefined && { createConnection: () => given }),
      ...(given === undefined && agent !== undefined && { agent }),
      ...(ca !== undefined && { ca }),
      ...(lookup !== undefined && { lookup }),
    };
    const request = url.protocol === 'https:' ? https.request(url, options) : http.request(url, options);
    sending.request = request;
    endWith(request, signal);
    request.on('error', (error) => {
      // Once a response has started, errors are reported by reading its body.
      if (!isAnswered) reject(isStale(error) ? new StaleConnectionError(error.message, { cause: error }) : error);
    });
    request.once('close', () => {
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
      resolve({ status: statusCode, headers, body: Readable.from([]) });
    });
    request.once('response', (response) => {
      isAnswered = true;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response });
    });
    if (isStreamed(body))
      pipeline(
        exactly(body, (error) => request.destroy(error)),
        request,
        () => {},
      );
    else request.end(body);

    function isStale(error: Error): boolean {
      const hasAnswered = socketOf !== undefined && socketOf.socket.bytesRead > socketOf.bytesReadBefore;
      return request.reusedSocket && !hasAnswered && STALE_CODES.has(errorCode(error) ?? '');
    }
  });
}

function isStreamed(body: HttpRequest['body']): body is StreamedBody {
  return body !== undefined && 'content' in body;
}

/** Yields the announced number of bytes. @param fail receives the error, since a pipeline only reports to the request that it ended */
async function* exactly(
  { content, sizeBytes }: StreamedBody,
  fail: (error: Error) => void,
): AsyncGenerator<Uint8Array> {
  let sentBytes = 0;
  try {
    for await (const chunk of content) {
      sentBytes += chunk.byteLength;
      yield chunk;
    }
    if (sentBytes !== sizeBytes) throw new Error(`${sentBytes} bytes were to be sent as ${sizeBytes}`);
  } catch (error) {
    fail(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

/** Returns the reason why an exchange failed, cut to a maximum length. */
export function exchangeErrorText(error: unknown, maxLength: number): string {
  if (!(error instanceof Error)) return String(error).slice(0, maxLength);
  // A host with several addresses that all fail gives an AggregateError without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return (first instanceof Error ? first.message : error.message).slice(0, maxLength);
}

/** Destroys a request when a signal aborts. Node's own `signal` option listens to every event of the request for that. */
function endWith(request: http.ClientRequest, signal: AbortSignal): void {
  const end = () => request.destroy(new AbortedError('The operation was aborted', { cause: signal.reason }));
  signal.addEventListener('abort', end, { once: true });
  request.once('close', () => signal.removeEventListener('abort', end));
  if (signal.aborted) end();
}

/** The error with the name and code that Node uses for an aborted operation. */
class AbortedError extends Error {
  override readonly name = 'AbortError';
  readonly code = 'ABORT_ERR';
}

/** Reads a response by its events: iterating it costs as much as the rest of a small exchange. */
export function readBounded(response: Readable, maxBytes: number): Promise<Pick<HttpAnswer, 'body' | 'bodyEnd'>> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const end = (bodyEnd: HttpAnswer['bodyEnd']) =>
      resolve({ body: Buffer.concat(chunks).subarray(0, maxBytes), bodyEnd });
    response.on('data', (chunk: Uint8Array) => {
      chunks.push(chunk);
      length += chunk.byteLength;
      if (length <= maxBytes) return;
      end('cut');
      // This closes the connection; the rest is not awaited.
      response.destroy();
    });
    response.once('end', () => end('complete'));
    response.on('error', end);
    response.once('close', () => {
      if (!response.readableEnded) end(new Error('the connection was closed before the answer was whole'));
    });
  });
}
