import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import { createDecoding, type Decoding, type DecodingOptions } from '../otlp/create-decoding.js';
import { EngineSightings } from '../otlp/engine-sightings.js';
import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { WholeBody } from '../otlp/read-body.js';
import type { DecodedRequest } from '../otlp/wire/wire-decoder.js';
import { type AcceptedBody, type BodyConsumer, ExportIntake, itemCountOf, otlpHandler } from '../receiver/feature.js';
import { ConsumeError, type Signal } from '../record/record-batch.js';

/** A request that was received: what is in it, and its bytes in protobuf. */
export type ReadRequestTaker = (decoded: DecodedRequest, signal: Signal, bytes: Uint8Array) => Promise<void>;

/** Reads the requests of a command: as the bridge's receiver does, but that each one's bytes are kept, to be decoded later. */
export class RequestReader implements BodyConsumer {
  readonly codecs: Decoding['codecs'];
  /** Answers requests that have no answer yet. It is loaded for the first of them: what engines send is answered at once. */
  private readonly handler: Lazy<RequestListener>;
  private readonly bodies: Decoding['bodies'];
  private readonly intake: ExportIntake;

  constructor(
    {
      clock,
      logger,
      engineNames,
    }: { readonly clock: Clock; readonly logger: Logger } & Pick<DecodingOptions, 'engineNames'>,
    private readonly listener: ReadRequestTaker,
  ) {
    const { codecs, bodies } = createDecoding({
      engineNames,
      sightings: new EngineSightings(logger),
    });
    this.codecs = codecs;
    this.bodies = bodies;
    this.intake = new ExportIntake(
      {},
      {
        codecs,
        bodies: this,
        clock,
        logger,
      },
    );
    this.handler = lazy(() => otlpHandler(this.intake, logger));
  }

  /** Answers a request that has no answer yet. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    (await this.handler.get())(request, response);
  }

  /** Takes a request that was answered before. @throws OtlpDecodeError, ConsumeError */
  async takeAnswered(signal: Signal, bytes: Uint8Array): Promise<void> {
    const body = { byteLength: bytes.length, bytes: () => bytes, release: () => {} };
    await this.intake.take(signal, 'protobuf', body);
  }

  /** The records of a request that was kept. @param bytes in protobuf */
  decode(signal: Signal, bytes: Uint8Array): Promise<DecodedRequest> {
    return this.bodies.protobuf[signal].decode(bytes);
  }

  /** @throws OtlpDecodeError, ConsumeError */
  async consumeBody(signal: Signal, encoding: OtlpEncoding, body: WholeBody): Promise<AcceptedBody> {
    let decoded: DecodedRequest;
    let bytes: Uint8Array;
    try {
      decoded = await this.bodies[encoding][signal].decode(body.bytes());
      bytes = this.inProtobuf(encoding, signal, body.bytes());
    } finally {
      body.release();
    }
    const { delivery, rejectedCount, rejectionMessage } = decoded;
    try {
      const isEmpty = delivery.batches.length === 0 && delivery.passthrough.length === 0;
      if (!isEmpty) await this.listener(decoded, signal, bytes);
    } catch (cause) {
      throw new ConsumeError('unavailable', `the request cannot be stored: ${String(cause)}`, RETRY_MS, { cause });
    } finally {
      delivery.release?.();
    }
    return { itemCount: itemCountOf(signal, delivery), rejectedCount, rejectionMessage };
  }

  /** A copy of a request in protobuf. */
  private inProtobuf(encoding: OtlpEncoding, signal: Signal, body: Uint8Array): Uint8Array {
    if (encoding === 'protobuf') return Uint8Array.from(body);
    return this.codecs.protobuf.encode(this.codecs.json.decode(signal, body));
  }
}

const RETRY_MS = 1_000;
