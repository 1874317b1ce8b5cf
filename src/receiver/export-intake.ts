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

/** A request in flight counts for at least this many bytes: it takes about that much without any body. */
const MIN_RESERVED_BYTES = 16 * 1024;

/** The answer to a request whose records were all accepted: an empty message. */
const FULL_SUCCESS: Readonly<Record<OtlpEncoding, Uint8Array>> = { protobuf: Buffer.alloc(0), json: Buffer.from('{}') };

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
  readonly bodies: BodyConsumer;
  /** Asked before a body is read; none when left out. */
  readonly guards?: readonly Guard[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Takes requests of any size for good. */
export interface BodyConsumer {
  /**
   * Resolves when all that is not rejected is durable.
   * @param body is released.
   * @param sender whose the telemetry is.
   * @throws OtlpDecodeError, ConsumeError
   */
  consumeBody(signal: Signal, encoding: OtlpEncoding, body: WholeBody, sender: Sender): Promise<AcceptedBody>;
}

/** What was accepted of a request. */
export interface AcceptedBody {
  /** Spans or log records. */
  readonly itemCount: number;
  readonly rejectedCount: number;
  /** Why; empty where nothing was. */
  readonly rejectionMessage: string;
}

/** Makes records of requests, and hands them to a consumer. */
export class DecodedBodies implements BodyConsumer {
  /** @param resolvesWhen a request is answered: as soon as it is durable, or when whoever follows records has heard of it as well */
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
      const own = deliveryOf(delivery, sender);
      const sent = this.resolvesWhen === 'durable' ? { ...own, onDurable: resolve } : own;
      this.consumer
        .consume(sent)
        .finally(() => delivery.release?.())
        .then(resolve, reject);
    });
  }

  /** What comes out holds nothing of the body. */
  private async decode(signal: Signal, encoding: OtlpEncoding, body: WholeBody): Promise<DecodedRequest> {
    try {
      return await this.decoders[encoding][signal].decode(body.bytes());
    } finally {
      body.release();
    }
  }
}

/**
 * What stands behind every OTLP receiver: it gives a body room, and waits until it is durable. All receivers share
 * one, so that its limits hold for all of them together.
 */
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

  /** OTLP's encodings, for answers. */
  get codecs(): Readonly<Record<OtlpEncoding, OtlpCodec>> {
    return this.deps.codecs;
  }

  /** What bodies in flight take now, in bytes. */
  get inFlightBytes(): number {
    return this.budget.usedBytes;
  }

  /**
   * Room for one more body; the caller releases its reservation when the sender has its response.
   * @param announcedBytes the body's length; 0 if unknown until it is read.
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
   * Takes a body and waits until it is durable.
   * @param body is released.
   * @param sender whose the telemetry is; default: the first account's, of which nothing else is said.
   * @returns the response message, in the same encoding.
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

  /** What to answer instead; it is logged here. */
  refuse(error: unknown): Refusal {
    const refusal = refusalOf(error);
    this.counts.refuse(refusal.reason);
    this.refusals.add(refusal, error);
    return refusal;
  }
}

/** The delivery with its records as a sender's. One of whom nothing is said has them as they were decoded. */
function deliveryOf(delivery: Delivery, sender: Sender): Delivery {
  if (sender.accountId === null && Object.keys(sender.scope).length === 0) return delivery;
  return { ...delivery, batches: delivery.batches.map((batch) => batchOfSender(batch, sender)) };
}

function isEmpty(delivery: Delivery): boolean {
  return delivery.batches.length === 0 && delivery.foreign.length === 0;
}

/** Contents of accepted requests of one signal, since the start. */
export interface AcceptedCounts {
  readonly requestCount: number;
  /** Spans or log records. */
  readonly itemCount: number;
  /** Inflated. */
  readonly bodyBytes: number;
  /** Rejected parts of accepted requests, which were reported to the sender. */
  readonly rejectedCount: number;
}

/** Counts of accepted and refused requests of an intake, since the start. Counted per request, never per record. */
export class IntakeCounts {
  readonly accepted: Readonly<Record<Signal, { -readonly [K in keyof AcceptedCounts]: number }>> = {
    traces: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
    logs: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
  };
  /** By reason; a closed set, so this map is bounded. */
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

/** Spans or log records of a delivery. */
export function itemCountOf(signal: Signal, { batches, foreign }: Delivery): number {
  let recordCount = 0;
  for (const batch of batches) recordCount += recordCountOf(batch);
  // A span makes two records, its start and its end; where another bridge sends them one by one, each is half of it.
  let itemCount = signal === 'traces' ? recordCount / 2 : recordCount;
  for (const one of foreign) itemCount += one.recordCount;
  return itemCount;
}

const MIB = 2 ** 20;
/** What the program takes without any request, measured: 75 MiB, and 20 MiB with its exports. */
const IDLE_BYTES = 96 * MIB;
/** A body of this size is always taken. */
const MIN_IN_FLIGHT_BYTES = 4 * MIB;

/**
 * What all bodies in flight may take together, in bytes, so that the process stays below `maxMemoryBytes` when all of
 * them are decoded at once: at most 256 MiB.
 */
export function inFlightLimit(maxMemoryBytes: number): number {
  const bytes = Math.floor((0.9 * maxMemoryBytes - IDLE_BYTES) / MEMORY_PER_BODY_BYTE);
  return Math.min(Math.max(bytes, MIN_IN_FLIGHT_BYTES), DEFAULT_MAX_IN_FLIGHT_BYTES);
}
