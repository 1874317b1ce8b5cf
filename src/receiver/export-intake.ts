import type { Clock } from '../component/clock.js';
import type { Guard } from '../component/guard.js';
import type { Logger } from '../component/logger.js';
import type { BodyDecoder, DecodedRequest, RequestDecoder } from '../decode/request-decoder.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Delivery, RecordConsumer, Signal } from '../record/record-batch.js';
import { batchOfAccount } from '../record/record-page.js';
import type { WholeBody } from './body-buffer.js';
import { BodyPool } from './body-pool.js';
import { ByteBudget } from './byte-budget.js';
import { IntakeCounts, itemCountOf } from './intake-counts.js';
import type { BodyRoom } from './read-body.js';
import { type Refusal, refusalOf } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import { NO_ROOM, RequestError } from './request-error.js';
import { ShortageError } from './shortage-error.js';

/** A request in flight counts for at least this many bytes: it takes about that much without any body. */
const MIN_RESERVED_BYTES = 16 * 1024;

/** What an intake may take. */
export interface ExportIntakeConfig {
  /** Largest body, in bytes, on the wire and again after inflating. Default 64 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * What all bodies in flight may take together, in bytes, from their first byte to their answer. Each counts for at
   * least 16 KiB, which bounds their number, too. Default 256 MiB; a body may have no more than this.
   */
  readonly maxInFlightBytes?: number | undefined;
}

/** 64 MiB. */
const DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024;

/** 256 MiB. */
export const DEFAULT_MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;

/** What an intake works with. */
export interface ExportIntakeDeps {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly decoder: RequestDecoder;
  /** Reads requests in protobuf from their bytes; without it they go through `codecs` and `decoder`. */
  readonly protobuf?: Readonly<Record<Signal, BodyDecoder>>;
  /** The same for JSON. */
  readonly json?: Readonly<Record<Signal, BodyDecoder>>;
  readonly consumer: RecordConsumer;
  /** Asked before a body is read; none when left out. */
  readonly guards?: readonly Guard[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * What stands behind every OTLP receiver: it gives a body room, and makes durable records of it. All receivers share
 * one, so that its limits hold for all of them together.
 */
export class ExportIntake {
  readonly counts = new IntakeCounts();
  private readonly maxBodyBytes: number;
  private readonly budget: ByteBudget;
  private readonly pool = new BodyPool();
  private readonly refusals: RefusalLog;
  private readonly guards: readonly Guard[];

  constructor(
    config: ExportIntakeConfig,
    private readonly deps: ExportIntakeDeps,
  ) {
    const maxInFlightBytes = config.maxInFlightBytes ?? DEFAULT_MAX_IN_FLIGHT_BYTES;
    this.maxBodyBytes = Math.min(config.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES, maxInFlightBytes);
    this.budget = new ByteBudget(maxInFlightBytes);
    this.refusals = new RefusalLog(deps.clock, deps.logger);
    this.guards = deps.guards ?? [];
  }

  /** OTLP's encodings, for answers. */
  get codecs(): Readonly<Record<OtlpEncoding, OtlpCodec>> {
    return this.deps.codecs;
  }

  /** What bodies in flight take now, in bytes. */
  get inFlightBytes(): number {
    return this.budget.usedBytes;
  }

  /**
   * Room for one more body; whoever asked releases its reservation when the sender has its answer.
   * @param announcedBytes the body's length; 0 where it is unknown, and found out while it is read.
   * @throws RequestError `too_large`, `busy`; ShortageError
   */
  makeRoom(announcedBytes: number): BodyRoom {
    const { maxBodyBytes, pool } = this;
    if (announcedBytes > maxBodyBytes) {
      throw new RequestError(
        'too_large',
        `A body may have ${maxBodyBytes} bytes, this one has ${announcedBytes}; send smaller batches.`,
      );
    }
    for (const guard of this.guards) {
      const shortage = guard.findShortage(announcedBytes);
      if (shortage !== undefined) throw new ShortageError(shortage);
    }
    const reservation = this.budget.reserve(Math.max(announcedBytes, MIN_RESERVED_BYTES));
    if (reservation === undefined) throw new RequestError('busy', NO_ROOM);
    return { maxBodyBytes, reservation, pool };
  }

  /**
   * Makes records of a body and waits until they are durable.
   * @param body is released.
   * @param accountId whose the telemetry is; default: the first account's.
   * @returns the response message, in the same encoding.
   * @throws OtlpDecodeError, ConsumeError
   */
  async take(
    signal: Signal,
    encoding: OtlpEncoding,
    body: WholeBody,
    accountId: number | null = null,
  ): Promise<Uint8Array> {
    const codec = this.deps.codecs[encoding];
    const { byteLength } = body;
    for (const guard of this.guards) guard.onBody(byteLength);
    const { delivery, rejectedCount, rejectionMessage } = await this.decode(signal, codec, body);
    if (rejectedCount > 0) this.refusals.addPartial(rejectedCount, rejectionMessage);
    const itemCount = itemCountOf(signal, delivery);
    try {
      if (!isEmpty(delivery)) await this.deps.consumer.consume(ofSender(delivery, accountId));
    } finally {
      delivery.release?.();
    }
    this.counts.accept(signal, itemCount, byteLength, rejectedCount);
    return codec.encodeResponse(signal, rejectedCount, rejectionMessage);
  }

  /** What to answer instead; it is logged here. */
  refuse(error: unknown): Refusal {
    const refusal = refusalOf(error);
    this.counts.refuse(refusal.reason);
    this.refusals.add(refusal, error);
    return refusal;
  }

  /** What comes out holds nothing of the body. */
  private async decode(signal: Signal, codec: OtlpCodec, body: WholeBody): Promise<DecodedRequest> {
    const bodies = this.deps[codec.encoding];
    try {
      if (bodies !== undefined) return await bodies[signal].decode(body.bytes());
      return this.deps.decoder.decode(codec.decode(signal, body.bytes()));
    } finally {
      body.release();
    }
  }
}

/** The delivery with its records as an account's (`null`: the first, whose a delivery is as it was decoded). */
function ofSender(delivery: Delivery, accountId: number | null): Delivery {
  if (accountId === null) return delivery;
  return { ...delivery, batches: delivery.batches.map((batch) => batchOfAccount(batch, accountId)) };
}

function isEmpty(delivery: Delivery): boolean {
  return delivery.batches.length === 0 && delivery.foreign.length === 0;
}
