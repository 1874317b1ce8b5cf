import http from 'node:http';
import https from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '../core/clock.js';
import { exchange, exchangeErrorText, type HttpAnswer } from '../core/http-exchange.js';
import { parseRetryAfterMs } from '../core/retry-policy.js';
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

/**
 * Posts bodies over kept-alive connections. Redirects are not followed: a redirect answers with an address that is better
 * written into the configuration. No proxy is used: `HTTP_PROXY` and its like are not read, neither for loopback nor beyond.
 */
export class HttpTransport implements Transport {
  private readonly agent: http.Agent;

  constructor(
    private readonly options: HttpTransportOptions,
    private readonly clock: Clock,
  ) {
    const isSecure = options.url.protocol === 'https:';
    this.agent = isSecure ? new https.Agent({ keepAlive: true, ...options.tls }) : new http.Agent({ keepAlive: true });
  }

  async send(body: Uint8Array, signal: AbortSignal): Promise<SendResult> {
    const content = this.options.compression === 'gzip' ? await gzipAsync(body) : body;
    try {
      return this.toResult(await this.post(content, signal));
    } catch (error) {
      return {
        kind: 'retryable',
        status: null,
        retryAfterMs: null,
        message: exchangeErrorText(error, MAX_MESSAGE_LENGTH),
      };
    }
  }

  /** Closes the connections; a request under way fails. */
  close(): void {
    this.agent.destroy();
  }

  private async post(content: Uint8Array, signal: AbortSignal): Promise<HttpAnswer> {
    const { url, headers, timeoutMs, compression } = this.options;
    const encoding = compression === 'gzip' ? { 'content-encoding': 'gzip' } : {};
    const answer = await exchange(
      { url, agent: this.agent, headers: { ...headers, ...encoding }, body: content },
      {
        ...{ clock: this.clock, signal, timeoutMs, timeoutMessage: `no answer within ${timeoutMs} ms` },
        maxBodyBytes: MAX_ANSWER_BYTES,
      },
    );
    if (answer.bodyEnd === 'complete') return answer;
    if (answer.bodyEnd === 'cut') return { ...answer, body: NO_BODY };
    throw answer.bodyEnd;
  }

  private toResult({ status, headers, body }: HttpAnswer): SendResult {
    if (status >= 200 && status < 300) return { kind: 'accepted', ...this.readAccepted(body) };
    const message = this.readError(body, headers['content-type'] ?? '');
    // 101 is no answer to what was asked: whatever stands in front of the receiver may come to its senses.
    if (status < 200 || status === 408 || status === 429 || status >= 500) {
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
