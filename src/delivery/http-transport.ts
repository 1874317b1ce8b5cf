import http from 'node:http';
import https from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '../component/clock.js';
import { parseRetryAfterMs } from './retry-after.js';
import type { SendResult, Transport } from './transport.js';

/** Where and how bodies are posted. */
export interface HttpTransportOptions {
  /** `http:` or `https:`. */
  readonly url: URL;
  /** Sent with every request, `content-type` among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** From the first byte sent to the last byte received, in milliseconds. */
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
  /** PEM texts. The receiver's certificate is always verified, against `ca` in place of the usual authorities where given. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Reads the body of a 2xx answer; what it throws is taken as "nothing was rejected". */
  readonly readAccepted: (body: Uint8Array) => { readonly rejectedCount: number; readonly message: string };
  /** Reads the message out of the body of any other answer; what it throws is taken as no message. */
  readonly readError: (body: Uint8Array, contentType: string) => string;
}

/** Of an answer's body no more is read; of a longer one nothing is understood. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** A receiver's message is cut here, in characters. */
const MAX_MESSAGE_LENGTH = 300;
const NO_BODY = new Uint8Array(0);
const gzipAsync = promisify(gzip);

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/**
 * Posts bodies over kept-alive connections. Redirects are not followed: a redirect answers with an address that is better
 * written into the configuration. No proxy is used: `HTTP_PROXY` and its like are not read, neither for loopback nor beyond.
 */
export class HttpTransport implements Transport {
  private readonly agent: http.Agent;
  private readonly request: typeof http.request;

  constructor(
    private readonly options: HttpTransportOptions,
    private readonly clock: Clock,
  ) {
    const isSecure = options.url.protocol === 'https:';
    this.agent = isSecure ? new https.Agent({ keepAlive: true, ...options.tls }) : new http.Agent({ keepAlive: true });
    this.request = isSecure ? https.request : http.request;
  }

  async send(body: Uint8Array, signal: AbortSignal): Promise<SendResult> {
    const content = this.options.compression === 'gzip' ? await gzipAsync(body) : body;
    try {
      return this.toResult(await this.post(content, signal));
    } catch (error) {
      return { kind: 'retryable', status: null, retryAfterMs: null, message: networkMessage(error) };
    }
  }

  /** Closes the connections; a request under way fails. */
  close(): void {
    this.agent.destroy();
  }

  private post(content: Uint8Array, signal: AbortSignal): Promise<Answer> {
    const { url, headers, timeoutMs, compression } = this.options;
    return new Promise((resolve, reject) => {
      const request = this.request(url, {
        method: 'POST',
        agent: this.agent,
        signal,
        headers: {
          ...headers,
          'content-length': content.byteLength,
          ...(compression === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
        },
      });
      const timer = this.clock.after(timeoutMs, () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      const settle = () => timer.cancel();
      request.once('close', settle);
      request.once('error', reject);
      request.once('response', (response) => {
        readBounded(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          reject,
        );
      });
      request.end(content);
    });
  }

  private toResult({ status, headers, body }: Answer): SendResult {
    if (status >= 200 && status < 300) return { kind: 'accepted', ...this.readAccepted(body) };
    const message = this.readError(body, headers['content-type'] ?? '');
    if (status === 408 || status === 429 || status >= 500) {
      const retryAfterMs = parseRetryAfterMs(headers['retry-after'], this.clock.nowUnixMs());
      return { kind: 'retryable', status, retryAfterMs, message };
    }
    return { kind: 'refused', status, message };
  }

  private readAccepted(body: Uint8Array): { rejectedCount: number; message: string } {
    try {
      const { rejectedCount, message } = this.options.readAccepted(body);
      return { rejectedCount, message: message.slice(0, MAX_MESSAGE_LENGTH) };
    } catch {
      // The status says that it was taken; many receivers answer with a body of their own.
      return { rejectedCount: 0, message: '' };
    }
  }

  private readError(body: Uint8Array, contentType: string): string {
    try {
      return this.options.readError(body, contentType).slice(0, MAX_MESSAGE_LENGTH);
    } catch {
      return '';
    }
  }
}

/** The body, or nothing where it is longer than `MAX_ANSWER_BYTES`; the rest is then not waited for. */
async function readBounded(response: http.IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) {
      response.destroy();
      return NO_BODY;
    }
  }
  return Buffer.concat(chunks);
}

function networkMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A host with several addresses that all fail gives an AggregateError without a message of its own.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return (first instanceof Error ? first.message : error.message).slice(0, MAX_MESSAGE_LENGTH);
}
