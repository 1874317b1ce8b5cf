import http from 'node:http';
import https from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import protobuf from 'protobufjs/minimal.js';
import { type DestinationConfig, loadTls, type SignalEndpoint, type TlsTexts } from '../config/destination-config.js';
import { type Clock, isPassingStatus, parseRetryAfterMs } from '../core/clock.js';
import { exchange, exchangeErrorText, type HttpAnswer } from '../core/http-client.js';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import { LENGTH, tagOf, VARINT } from '../otlp/wire-type.js';
import type { Signal } from '../record/record-batch.js';
import type { BatchOutcome, Destination } from './destination.js';
import { NOT_ASKED, refused, retryable, type SendResult, secretMask, secretsOf } from './destination.js';
import { MAX_REFUSED_ALONE, meaningOf } from './signal-breaker.js';
import { type ItemBatch, type LoadCodecs, RequestEncoder } from './wire/export-request.js';
import { countOf } from './wire/item-window.js';

/** Where and how bodies are posted. */
export interface HttpTransportOptions {
  /** `http:` or `https:`. */
  readonly url: URL;
  /** Sent with every request, `content-type` among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** From the first byte sent to the last byte received, in milliseconds. */
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
  readonly tls?: TlsTexts;
  /** Reads the body of a 2xx answer; what it throws is taken as "nothing was rejected". */
  readonly readAccepted: (body: Uint8Array) => PartialSuccess;
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
export class HttpTransport {
  private readonly agent: http.Agent;
  private readonly masked: (message: string) => string;

  constructor(
    private readonly options: HttpTransportOptions,
    private readonly clock: Clock,
  ) {
    const isSecure = options.url.protocol === 'https:';
    const { 'user-agent': _agent, 'content-type': _type, ...headers } = options.headers;
    this.masked = secretMask(secretsOf({ url: options.url, headers }));
    this.agent = isSecure ? new https.Agent({ keepAlive: true, ...options.tls }) : new http.Agent({ keepAlive: true });
  }

  /** @param releaseBody called once when nothing reads the body any more; never where that is not known */
  async send(body: Uint8Array, signal: AbortSignal, releaseBody: () => void = () => {}): Promise<SendResult> {
    const isPacked = this.options.compression === 'gzip';
    const content = isPacked ? await gzipAsync(body) : body;
    if (isPacked) releaseBody();
    try {
      const answer = await this.post(content, signal);
      if (answer.isSent && !isPacked) releaseBody();
      return this.toResult(answer);
    } catch (error) {
      return retryable(this.masked(exchangeErrorText(error, MAX_MESSAGE_LENGTH)));
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
      { method: 'POST', url, agent: this.agent, headers: { ...headers, ...encoding }, body: content },
      {
        signal,
        maxBodyBytes: MAX_ANSWER_BYTES,
        timeout: { clock: this.clock, ms: timeoutMs, message: `no answer within ${timeoutMs} ms` },
      },
    );
    if (answer.bodyEnd === 'complete') return answer;
    if (answer.bodyEnd === 'cut') return { ...answer, body: NO_BODY };
    throw answer.bodyEnd;
  }

  private toResult({ status, headers, body }: HttpAnswer): SendResult {
    if (status >= 200 && status < 300) return { kind: 'accepted', status, ...this.readAccepted(body) };
    const answer = this.readError(body, headers['content-type'] ?? '');
    // What servers add to a redirect is a page for people.
    const isPage = answer === '' || answer.startsWith('<');
    const message = isPage && status >= 300 && status < 400 ? this.redirectText(headers.location) : answer;
    if (!isPassingStatus(status)) return refused(status, message);
    return retryable(message, status, parseRetryAfterMs(headers['retry-after'], this.clock.nowUnixMs()));
  }

  /** An address that is followed would get headers that are not meant for it. */
  private redirectText(location: string | undefined): string {
    const to = location === undefined ? 'another address' : this.masked(location);
    return `it redirects to ${to}; set the endpoint to where it is`.slice(0, MAX_MESSAGE_LENGTH);
  }

  private readAccepted(body: Uint8Array): PartialSuccess {
    try {
      const { rejectedCount, message } = this.options.readAccepted(body);
      return { rejectedCount, message: this.masked(message).slice(0, MAX_MESSAGE_LENGTH) };
    } catch {
      // The status says that it was taken; many receivers answer with a body of their own.
      return NOTHING_REJECTED;
    }
  }

  private readError(body: Uint8Array, contentType: string): string {
    try {
      return this.masked(this.options.readError(body, contentType)).slice(0, MAX_MESSAGE_LENGTH);
    } catch {
      return '';
    }
  }
}

/** Bodies are kept below this, in bytes before compression; the Collector takes 20 MiB over HTTP, many gateways 4 MiB or more. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** What an OTLP destination works with. */
export interface OtlpDestinationDeps {
  /** Loads both encodings, for requests in JSON and for other services' messages. */
  readonly codecs: LoadCodecs;
  readonly clock: Clock;
  /** Sent as `user-agent`, for example `run-bridge/0.1.0`. */
  readonly userAgent: string;
}

interface SignalSender {
  readonly encoder: RequestEncoder;
  readonly transport: HttpTransport;
}

const CONTENT_TYPES = { json: 'application/json', protobuf: 'application/x-protobuf' } as const;
/** Requests without a record. */
const EMPTY_REQUESTS = { json: Buffer.from('{}'), protobuf: Buffer.alloc(0) } as const;

/** A destination that speaks OTLP over HTTP. */
export class OtlpDestination implements Destination {
  readonly name: string;
  readonly signals: readonly Signal[];

  /** @throws Error when a certificate or key file cannot be read. */
  static async open(config: DestinationConfig, deps: OtlpDestinationDeps): Promise<OtlpDestination> {
    const senders: Partial<Record<Signal, SignalSender>> = {};
    for (const signal of ['traces', 'logs'] as const) {
      const endpoint = config.endpoints[signal];
      if (endpoint !== undefined) senders[signal] = await openSender(signal, endpoint, deps);
    }
    return new OtlpDestination(config.name, senders, deps);
  }

  private constructor(
    name: string,
    private readonly senders: Readonly<Partial<Record<Signal, SignalSender>>>,
    private readonly deps: OtlpDestinationDeps,
  ) {
    this.name = name;
    this.signals = (['traces', 'logs'] as const).filter((signal) => senders[signal] !== undefined);
  }

  async send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    const sender = this.senders[batch.signal];
    if (sender === undefined) return { result: NOT_ASKED, itemCount: countOf(batch.ranges) };
    const { encoder, transport } = sender;
    const { body, itemCount } = await encoder.encode(batch);
    return { result: await transport.send(body, abort, () => encoder.giveBack(body)), itemCount };
  }

  async forward(signal: Signal, body: string, abort: AbortSignal, isHalved = false): Promise<SendResult> {
    const sender = this.senders[signal];
    if (sender === undefined) return NOT_ASKED;
    const { encoder, transport } = sender;
    const json = Buffer.from(body);
    if (encoder.encoding === 'json') {
      const result = await transport.send(json, abort);
      if (!isInParts(result, isHalved)) return result;
    }
    const codecs = await this.deps.codecs();
    const whole = codecs.protobuf.encode(codecs.json.decode(signal, json));
    if (encoder.encoding === 'json') {
      const toJson = (bytes: Uint8Array) => codecs.json.encode(codecs.protobuf.decode(signal, bytes));
      return forwardParts(whole, isHalved, (bytes) => transport.send(toJson(bytes), abort));
    }
    return forwardParts(whole, isHalved, (bytes) => transport.send(bytes, abort));
  }

  async ask(signal: Signal, abort: AbortSignal): Promise<SendResult> {
    const sender = this.senders[signal];
    return sender === undefined ? NOT_ASKED : sender.transport.send(EMPTY_REQUESTS[sender.encoder.encoding], abort);
  }

  async close(): Promise<void> {
    for (const sender of Object.values(this.senders)) sender.transport.close();
  }
}

/** Returns whether what was not taken whole may be taken in parts. */
function isInParts(result: SendResult, isHalved: boolean): boolean {
  const meaning = meaningOf(result);
  return meaning === 'tooLarge' || meaning === 'refused' || (meaning === 'failed' && isHalved);
}

/**
 * Sends a request in protobuf, and by halves what is not taken, until records are alone.
 * @returns the answer that leaves it to be sent again; else how many records were given up, as a partial success
 */
async function forwardParts(
  whole: Uint8Array,
  isHalved: boolean,
  send: (bytes: Uint8Array) => Promise<SendResult>,
): Promise<SendResult> {
  const { splitRequest } = await import('../otlp/wire/wire-decoder.js');
  const waiting = [Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength)];
  let taken: Extract<SendResult, { readonly kind: 'accepted' }> | undefined;
  let [givenUpCount, refusedAlone] = [0, 0];
  let refusal: SendResult = NOT_ASKED;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const result = await send(next);
    if (result.kind === 'accepted') {
      taken = { ...result, rejectedCount: result.rejectedCount + (taken?.rejectedCount ?? 0) };
      refusedAlone = 0;
      continue;
    }
    if (!isInParts(result, isHalved)) return result;
    refusal = result;
    const halves = [...splitRequest(next, Math.ceil(next.length / 2))].filter((one) => one.length > 0);
    if (halves.length > 1 && refusedAlone < MAX_REFUSED_ALONE) waiting.push(...halves.reverse());
    else {
      givenUpCount += 1;
      refusedAlone += 1;
    }
  }
  if (taken === undefined) return refusal;
  return givenUpCount === 0
    ? taken
    : { ...taken, rejectedCount: taken.rejectedCount + givenUpCount, message: refusal.message };
}

async function openSender(signal: Signal, endpoint: SignalEndpoint, deps: OtlpDestinationDeps): Promise<SignalSender> {
  const { encoding } = endpoint;
  const transport = await openTransport(endpoint, deps, (body) => readExportResponse(signal, encoding, body));
  return { encoder: new RequestEncoder(encoding, deps.codecs, MAX_BODY_BYTES), transport };
}

/** Opens what posts OTLP requests to an endpoint. @throws Error when a certificate or key file cannot be read */
export async function openTransport(
  { url, headers, timeoutMs, compression, encoding, tls }: SignalEndpoint,
  { userAgent, clock }: Pick<OtlpDestinationDeps, 'userAgent' | 'clock'>,
  readAccepted: HttpTransportOptions['readAccepted'],
): Promise<HttpTransport> {
  return new HttpTransport(
    {
      url: new URL(url),
      headers: { 'user-agent': userAgent, ...headers, 'content-type': CONTENT_TYPES[encoding] },
      ...{ timeoutMs, compression, tls: await loadTls(tls), readAccepted, readError: readErrorResponse },
    },
    clock,
  );
}

/** What a receiver says that it did not take of an accepted request. */
export interface PartialSuccess {
  readonly rejectedCount: number;
  readonly message: string;
}

export const NOTHING_REJECTED: PartialSuccess = { rejectedCount: 0, message: '' };

/** Reads an OTLP export response. @throws when it is none. */
export function readExportResponse(signal: Signal, encoding: OtlpEncoding, body: Uint8Array): PartialSuccess {
  if (body.byteLength === 0) return NOTHING_REJECTED;
  return encoding === 'json' ? readJsonResponse(signal, body) : readProtobufResponse(body);
}

function readJsonResponse(signal: Signal, body: Uint8Array): PartialSuccess {
  const response: unknown = JSON.parse(new TextDecoder().decode(body));
  const partial = fieldOf(response, 'partialSuccess');
  const message = fieldOf(partial, 'errorMessage');
  const count = fieldOf(partial, signal === 'traces' ? 'rejectedSpans' : 'rejectedLogRecords');
  return toPartialSuccess(count, typeof message === 'string' ? message : '');
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Reads an answer. `ExportTraceServiceResponse` and its sister have `partial_success` 1, of which `rejected_…` is 1 and `error_message` 2. */
function readProtobufResponse(body: Uint8Array): PartialSuccess {
  let partial = NOTHING_REJECTED;
  readFields(body, (field, reader) => {
    if (field === PARTIAL_SUCCESS) partial = readPartialSuccess(reader.bytes());
    return field === PARTIAL_SUCCESS;
  });
  return partial;
}

function readPartialSuccess(message: Uint8Array): PartialSuccess {
  let [count, text] = ['0', ''];
  readFields(message, (field, reader) => {
    if (field === REJECTED_COUNT) count = reader.int64().toString();
    else if (field === MESSAGE) text = reader.string();
    return field === REJECTED_COUNT || field === MESSAGE;
  });
  return toPartialSuccess(count, text);
}

/** Reads the message of an error answer: a `google.rpc.Status` in either encoding, or a text. @throws when it is neither. */
export function readErrorResponse(body: Uint8Array, contentType: string): string {
  if (contentType.startsWith('application/x-protobuf')) return readStatusMessage(body);
  const text = new TextDecoder().decode(body).trim();
  if (!contentType.startsWith('application/json')) return text;
  const status: unknown = JSON.parse(text);
  const isStatus = typeof status === 'object' && status !== null && 'message' in status;
  return isStatus && typeof status.message === 'string' ? status.message : text;
}

/** The count is an int64, in JSON possibly a string of digits. */
function toPartialSuccess(count: unknown, message: string): PartialSuccess {
  const rejectedCount = Number(count ?? 0);
  return { rejectedCount: Number.isSafeInteger(rejectedCount) ? Math.max(0, rejectedCount) : 0, message };
}

/** Reads a `google.rpc.Status`: code 1, message 2, details 3. */
function readStatusMessage(body: Uint8Array): string {
  let message = '';
  readFields(body, (field, reader) => {
    if (field === MESSAGE) message = reader.string();
    return field === MESSAGE;
  });
  return message;
}

const PARTIAL_SUCCESS = tagOf(1, LENGTH);
const REJECTED_COUNT = tagOf(1, VARINT);
const MESSAGE = tagOf(2, LENGTH);

/** Reads a message's fields. @param read reads the value behind a tag, and says whether it did */
function readFields(message: Uint8Array, read: (tag: number, reader: protobuf.Reader) => boolean): void {
  const reader = protobuf.Reader.create(message);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (!read(tag, reader)) reader.skipType(tag & 7);
  }
}
