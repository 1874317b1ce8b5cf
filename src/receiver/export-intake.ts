import { BufferPool } from '../core/bytes.js';
import type { Clock } from '../core/clock.js';
import { type Guard, MEMORY_PER_BODY_BYTE } from '../core/guard.js';
import type { Logger } from '../core/logger.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import { type BodyRoom, ByteBudget, type WholeBody } from '../otlp/read-body.js';
import { NO_ROOM, type Refusal, RefusalLog, RequestError, refusalOf, ShortageError } from '../otlp/refusal.js';
import { batchOfSender, recordCountOf } from '../otlp/wire/item-chunk.js';
import type { BodyDecoder, DecodedRequest } from '../otlp/wire/wire-decoder.js';
import { type Sender, UNKNOWN_SENDER } from '../record/attributes.js';
import type { Delivery, RecordConsumer, Signal } from '../record/record-batch.js';

/** The least that a request in flight counts, in bytes; it takes about that much memory even without a body. */
const MIN_RESERVED_BYTES = 16 * 1024;

/** The response to a request whose records were all accepted: an empty message. */
const FULL_SUCCESS: Readonly<Record<OtlpEncoding, Uint8Array>> = { protobuf: Buffer.alloc(0), json: Buffer.from('{}') };

/** The limits of an intake. */
export interface ExportIntakeConfig {
  /** The largest body, in bytes, before and after decompression. Default 64 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * The most memory for all bodies in flight, in bytes, from their first byte to their response. Each counts at least 16 KiB, which also bounds their number. Default 256 MiB; this also limits a
   * single body.
   */
  readonly maxInFlightBytes?: number | undefined;
}

/** 64 MiB. */
const DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024;

/** 256 MiB. */
export const DEFAULT_MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;

/** Dependencies of an intake. */
export interface ExportIntakeDeps {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly bodies: BodyConsumer;
  /** Checked before a body is read. Default: none. */
  readonly guards?: readonly Guard[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Stores the contents of request bodies durably. */
export interface BodyConsumer {
  /**
   * Resolves when everything that is not rejected is durable.
   * @param body is released
   * @param sender the sender of the telemetry
   * @throws OtlpDecodeError, ConsumeError
   */
  consumeBody(signal: Signal, encoding: OtlpEncoding, body: WholeBody, sender: Sender): Promise<AcceptedBody>;
}

/** The result of an accepted request. */
export interface AcceptedBody {
  /** The number of spans or log records. */
  readonly itemCount: number;
  readonly rejectedCount: number;
  /** The reason; empty if nothing was rejected. */
  readonly rejectionMessage: string;
}

/** Decodes request bodies and passes their records to a consumer. */
export class DecodedBodies implements BodyConsumer {
  /** @param resolvesWhen whether a request is answered as soon as it is durable, or after the consumer's listeners were notified as well */
  constructor(
    private readonly decoders: Readonly<Record<OtlpEncoding, Readonly<Record<Signal, BodyDecoder>>>>,
    private readonly consumer: RecordConsumer,
    private readonly resolvesWhen: 'durable' | 'consumed' = 'consumed',
  ) {}

  async consumeBody(signal: Signal, encoding: OtlpEncoding, body: WholeBody, sender: Sender): Promise<AcceptedBody> {
    const { delivery, rejectedCount, rejectionMessage } = await this.decode(signal, encoding, body);
    const itemCount = itemCountOf(signal, delivery);
    if (isEmpty(delivery)) delivery.release?.();
    else await this.consume(delivery, sender);
    return { itemCount, rejectedCount, rejectionMessage };
  }

  private consume(delivery: Delivery, sender: Sender): Promise<void> {
    return new Promise((resolve, reject) => {
      const ofSender = deliveryOf(delivery, sender);
      const sent = this.resolvesWhen === 'durable' ? { ...ofSender, onDurable: resolve } : ofSender;
      this.consumer
        .consume(sent)
        .finally(() => delivery.release?.())
        .then(resolve, reject);
    });
  }

  /** Decodes a body and releases it; the result does not refer to it. */
  private async decode(signal: Signal, encoding: OtlpEncoding, body: WholeBody): Promise<DecodedRequest> {
    try {
      return await this.decoders[encoding][signal].decode(body.bytes());
    } finally {
      body.release();
    }
  }
}

/** The common part of all OTLP receivers: reserves memory for a body and waits until it is durable. All receivers share one intake, so that its limits apply to all of them together. */
export class ExportIntake {
  readonly counts = new IntakeCounts();
  private readonly maxBodyBytes: number;
  private readonly budget: ByteBudget;
  private readonly pool = new BufferPool();
  private readonly refusals: RefusalLog;

  constructor(
    config: ExportIntakeConfig,
    private readonly deps: ExportIntakeDeps,
  ) {
    const maxInFlightBytes = config.maxInFlightBytes ?? DEFAULT_MAX_IN_FLIGHT_BYTES;
    this.maxBodyBytes = Math.min(config.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES, maxInFlightBytes);
    this.budget = new ByteBudget(maxInFlightBytes);
    this.refusals = new RefusalLog(deps.clock, deps.logger);
  }

  /** The codecs of OTLP's encodings, for responses. */
  get codecs(): Readonly<Record<OtlpEncoding, OtlpCodec>> {
    return this.deps.codecs;
  }

  /** The memory that bodies in flight take now, in bytes. */
  get inFlightBytes(): number {
    return this.budget.usedBytes;
  }

  /**
   * Reserves memory for a body; the caller releases the reservation when the sender has its response.
   * @param announcedBytes length of the body; 0 if it is not known before reading
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
    for (const guard of this.deps.guards ?? []) {
      const shortage = guard.findShortage(announcedBytes);
      if (shortage !== undefined) throw new ShortageError(shortage);
    }
    const reservation = this.budget.reserve(Math.max(announcedBytes, MIN_RESERVED_BYTES));
    if (reservation === undefined) throw new RequestError('busy', NO_ROOM);
    return { maxBodyBytes, reservation, pool };
  }

  /**
   * Stores a body and waits until it is durable.
   * @param body is released
   * @param sender the sender of the telemetry; by default unknown, which belongs to the first account
   * @returns the response message in the same encoding
   * @throws OtlpDecodeError, ConsumeError
   */
  async take(
    signal: Signal,
    encoding: OtlpEncoding,
    body: WholeBody,
    sender: Sender = UNKNOWN_SENDER,
  ): Promise<Uint8Array> {
    const { codecs, bodies, guards = [] } = this.deps;
    const { byteLength } = body;
    for (const guard of guards) guard.onBody(byteLength);
    const { itemCount, rejectedCount, rejectionMessage } = await bodies.consumeBody(signal, encoding, body, sender);
    if (rejectedCount > 0) this.refusals.addPartial(rejectedCount, rejectionMessage);
    this.counts.accept(signal, itemCount, byteLength, rejectedCount);
    const isFullSuccess = rejectedCount === 0 && rejectionMessage === '';
    if (isFullSuccess) return FULL_SUCCESS[encoding];
    return codecs[encoding].encodeResponse(signal, rejectedCount, rejectionMessage);
  }

  /** Converts an error to a refusal, and counts and logs it. */
  refuse(error: unknown): Refusal {
    const refusal = refusalOf(error);
    this.counts.refuse(refusal.reason);
    this.refusals.add(refusal, error);
    return refusal;
  }
}

/** Returns a delivery with its records as a sender's; unchanged for a sender of the first account without a scope. */
function deliveryOf(delivery: Delivery, sender: Sender): Delivery {
  if (sender.accountId === null && Object.keys(sender.scope).length === 0) return delivery;
  return { ...delivery, batches: delivery.batches.map((batch) => batchOfSender(batch, sender)) };
}

function isEmpty(delivery: Delivery): boolean {
  return delivery.batches.length === 0 && delivery.passthrough.length === 0;
}

/** Counts of accepted requests of one signal since the start. */
export interface AcceptedCounts {
  readonly requestCount: number;
  /** The number of spans or log records. */
  readonly itemCount: number;
  /** The length of the bodies after decompression. */
  readonly bodyBytes: number;
  /** Items rejected in accepted requests, which was reported to the sender. */
  readonly rejectedCount: number;
}

/** Counts accepted and refused requests of an intake since the start; counted per request, not per record. */
export class IntakeCounts {
  readonly accepted: Readonly<Record<Signal, { -readonly [K in keyof AcceptedCounts]: number }>> = {
    traces: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
    logs: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
  };
  /** The number of refused requests by reason. The reasons are a closed set, so the map is bounded. */
  readonly refused = new Map<string, number>();

  accept(signal: Signal, itemCount: number, bodyBytes: number, rejectedCount: number): void {
    const counts = this.accepted[signal];
    counts.requestCount += 1;
    counts.itemCount += itemCount;
    counts.bodyBytes += bodyBytes;
    counts.rejectedCount += rejectedCount;
  }

  refuse(reason: string): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}

/** Returns the number of spans or log records of a delivery. */
export function itemCountOf(signal: Signal, { batches, passthrough }: Delivery): number {
  let recordCount = 0;
  for (const batch of batches) recordCount += recordCountOf(batch);
  // A span makes two records, its start and its end. Another bridge may send them separately; then each counts as half a span.
  let itemCount = signal === 'traces' ? recordCount / 2 : recordCount;
  for (const one of passthrough) itemCount += one.recordCount;
  return itemCount;
}

const MIB = 2 ** 20;
/** Memory of the program without requests, as measured: 75 MiB, and 20 MiB with exports. */
const IDLE_BYTES = 96 * MIB;
/** A body of this size is always accepted. */
const MIN_IN_FLIGHT_BYTES = 4 * MIB;

/** Returns the most memory for all bodies in flight, in bytes, so that the process stays below `maxMemoryBytes` even if all of them are decoded at once; at most 256 MiB. */
export function inFlightLimit(maxMemoryBytes: number): number {
  const bytes = Math.floor((0.9 * maxMemoryBytes - IDLE_BYTES) / MEMORY_PER_BODY_BYTE);
  return Math.min(Math.max(bytes, MIN_IN_FLIGHT_BYTES), DEFAULT_MAX_IN_FLIGHT_BYTES);
}
