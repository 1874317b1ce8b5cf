import type { Request, Response } from 'express';
import type { Guard } from '../component/guard.js';
import type { BodyDecoder, DecodedRequest, RequestDecoder } from '../decode/request-decoder.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { Delivery, RecordConsumer } from '../record/record-consumer.js';
import type { BodyBuffer } from './body-buffer.js';
import { BodyPool } from './body-pool.js';
import type { ByteBudget, Reservation } from './byte-budget.js';
import { readBody } from './read-body.js';
import type { RefusalLog } from './refusal-log.js';
import { NO_ROOM, RequestError } from './request-error.js';
import { MEDIA_TYPES, parseContentCoding, parseContentLength, parseEncoding } from './request-format.js';
import { ShortageError } from './shortage-error.js';

/** A request in flight counts for at least this many bytes: it takes about that much without any body. */
const MIN_RESERVED_BYTES = 16 * 1024;

/** What the handler works with. */
export interface ExportHandlerDeps {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly decoder: RequestDecoder;
  /** Reads requests in protobuf from their bytes; without it they go through `codecs` and `decoder`. */
  readonly protobuf?: Readonly<Record<Signal, BodyDecoder>>;
  readonly consumer: RecordConsumer;
  /** Asked before a body is read. */
  readonly guards: readonly Guard[];
  readonly budget: ByteBudget;
  readonly refusals: RefusalLog;
  readonly maxBodyBytes: number;
}

/** Answers POST /v1/traces and /v1/logs: header, body, records, and 200 once they are durable. */
export class ExportHandler {
  private readonly pool = new BodyPool();

  constructor(private readonly deps: ExportHandlerDeps) {}

  /** @throws RequestError, ShortageError, OtlpDecodeError, ConsumeError, which `refusalOf` turns into answers. */
  async handle(signal: Signal, request: Request, response: Response): Promise<void> {
    const codec = this.deps.codecs[parseEncoding(request.headers)];
    const coding = parseContentCoding(request.headers);
    const reservation = this.reserve(parseContentLength(request.headers) ?? 0);
    response.once('close', () => reservation.release());
    if (request.headers.expect !== undefined) response.writeContinue();

    const room = { maxBodyBytes: this.deps.maxBodyBytes, reservation, pool: this.pool };
    const body = await readBody(request, coding, room);
    for (const guard of this.deps.guards) guard.onBody(body.byteLength);
    const { delivery, rejectedCount, rejectionMessage } = this.decode(signal, codec, body);
    if (rejectedCount > 0) this.deps.refusals.addPartial(rejectedCount, rejectionMessage);
    try {
      if (!isEmpty(delivery)) await this.deps.consumer.consume(delivery);
    } finally {
      delivery.release?.();
    }

    const answer = codec.encodeResponse(signal, rejectedCount, rejectionMessage);
    const headers = { 'Content-Type': MEDIA_TYPES[codec.encoding], 'Content-Length': answer.byteLength };
    response.writeHead(200, headers).end(answer);
  }

  /** What comes out holds nothing of the body. */
  private decode(signal: Signal, codec: OtlpCodec, body: BodyBuffer): DecodedRequest {
    const { protobuf, decoder } = this.deps;
    try {
      if (codec.encoding === 'protobuf' && protobuf !== undefined) return protobuf[signal].decode(body.bytes());
      return decoder.decode(codec.decode(signal, body.bytes()));
    } finally {
      body.release();
    }
  }

  private reserve(contentLength: number): Reservation {
    const { maxBodyBytes, budget } = this.deps;
    if (contentLength > maxBodyBytes) {
      throw new RequestError(
        'too_large',
        `A body may have ${maxBodyBytes} bytes, this one has ${contentLength}; send smaller batches.`,
      );
    }
    for (const guard of this.deps.guards) {
      const shortage = guard.findShortage(contentLength);
      if (shortage !== undefined) throw new ShortageError(shortage);
    }
    const reservation = budget.reserve(Math.max(contentLength, MIN_RESERVED_BYTES));
    if (reservation !== undefined) return reservation;
    throw new RequestError('busy', NO_ROOM);
  }
}

function isEmpty(delivery: Delivery): boolean {
  return delivery.batches.length === 0 && delivery.foreign.length === 0;
}
