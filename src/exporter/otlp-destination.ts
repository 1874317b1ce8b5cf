import type { Clock } from '../component/clock.js';
import { HttpTransport } from '../delivery/http-transport.js';
import type { SendResult } from '../delivery/transport.js';
import type { OtlpCodec } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { BatchOutcome, Destination } from './destination.js';
import type { DestinationConfig, SignalEndpoint } from './destination-config.js';
import { loadTls } from './destination-tls.js';
import type { ItemBatch } from './item-batch.js';
import { OtlpEncoder } from './otlp-encoder.js';
import { readErrorResponse, readExportResponse } from './otlp-response.js';

/** What an OTLP destination works with. */
export interface OtlpDestinationDeps {
  /** Both encodings, to forward other services' messages in the destination's. */
  readonly codecs: { readonly json: OtlpCodec; readonly protobuf: OtlpCodec };
  readonly clock: Clock;
  /** Sent as `user-agent`, for example `run-bridge/0.1.0`. */
  readonly userAgent: string;
}

interface SignalSender {
  readonly encoder: OtlpEncoder;
  readonly transport: HttpTransport;
}

const CONTENT_TYPES = { json: 'application/json', protobuf: 'application/x-protobuf' } as const;
const NOT_ASKED: SendResult = { kind: 'refused', status: 0, message: 'the destination does not get this signal' };

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
    if (sender === undefined) return { result: NOT_ASKED, itemCount: batch.items.length };
    const { body, itemCount } = sender.encoder.encode(batch);
    return { result: await sender.transport.send(body, abort), itemCount };
  }

  async forward(signal: Signal, body: string, abort: AbortSignal): Promise<SendResult> {
    const sender = this.senders[signal];
    if (sender === undefined) return NOT_ASKED;
    const json = Buffer.from(body);
    if (sender.encoder.encoding === 'json') return sender.transport.send(json, abort);
    const { codecs } = this.deps;
    return sender.transport.send(codecs.protobuf.encode(codecs.json.decode(signal, json)), abort);
  }

  async close(): Promise<void> {
    for (const sender of Object.values(this.senders)) sender.transport.close();
  }
}

async function openSender(
  signal: Signal,
  endpoint: SignalEndpoint,
  { clock, userAgent }: OtlpDestinationDeps,
): Promise<SignalSender> {
  const { encoding, timeoutMs, compression } = endpoint;
  const transport = new HttpTransport(
    {
      url: new URL(endpoint.url),
      headers: { 'user-agent': userAgent, ...endpoint.headers, 'content-type': CONTENT_TYPES[encoding] },
      timeoutMs,
      compression,
      tls: await loadTls(endpoint.tls),
      readAccepted: (body) => readExportResponse(signal, encoding, body),
      readError: readErrorResponse,
    },
    clock,
  );
  return { encoder: new OtlpEncoder(encoding), transport };
}
