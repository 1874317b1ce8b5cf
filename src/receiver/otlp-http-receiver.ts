import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type Express, type NextFunction, type Request, type Response, type Router } from 'express';
import { BufferPool } from '../core/bytes.js';
import type { Clock } from '../core/clock.js';
import { type Guard, MEMORY_PER_BODY_BYTE } from '../core/guard.js';
import type { Health, HealthState } from '../core/health.js';
import { healthRouter } from '../core/health-router.js';
import {
  type ConnectionCounts,
  HttpListener,
  type HttpListenerConfig,
  type ListenAddress,
} from '../core/http-listener.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../core/sender-gate.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import {
  type BodyRoom,
  ByteBudget,
  findEncoding,
  MEDIA_TYPES,
  parseContentCoding,
  parseContentLength,
  parseEncoding,
  readBody,
  type WholeBody,
} from '../otlp/read-body.js';
import {
  NO_METRICS,
  NO_ROOM,
  type Refusal,
  RefusalLog,
  RequestError,
  refusalOf,
  ShortageError,
} from '../otlp/refusal.js';
import { parseScopePath } from '../otlp/scope-path.js';
import { batchOfSender, recordCountOf } from '../otlp/wire/item-chunk.js';
import type { BodyDecoder, DecodedRequest } from '../otlp/wire/wire-decoder.js';
import { type Sender, UNKNOWN_SENDER } from '../record/attributes.js';
import type { Delivery, RecordConsumer, Signal } from '../record/record-batch.js';

/** A request in flight counts for at least this many bytes: it takes about that much without any body. */
const MIN_RESERVED_BYTES = 16 * 1024;

/** The answer to a request whose records were all accepted: an empty message. */
const FULL_SUCCESS: Readonly<Record<OtlpEncoding, Uint8Array>> = { protobuf: Buffer.alloc(0), json: Buffer.from('{}') };

/** The addresses to which nearly all requests go. */
const HOT_PATHS: ReadonlyMap<string | undefined, Signal> = new Map([
  ['/v1/traces', 'traces'],
  ['/v1/logs', 'logs'],
]);

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

/** What the receiver works with. */
export interface OtlpHttpReceiverDeps {
  readonly intake: ExportIntake;
  readonly logger: Logger;
  /** Gets the receiver's own check, and is answered at `/healthz` and `/readyz`. */
  readonly health: Health;
  /** Asked before a body is read; everybody may send where it is left out. */
  readonly gate?: SenderGate | undefined;
  /** Mounted at `/` after OTLP's own paths and health. Default: none. */
  readonly routers?: readonly Router[];
}

/**
 * OTLP over HTTP: POST /v1/traces and /v1/logs in protobuf and JSON, plain, gzip or deflate, also below a path that names
 * job, environment and project (`/job/nightly/v1/traces`). 200 is sent when the consumer
 * has made the records durable, not before. Limits: those of its intake, 1,024 connections, 15 s for a header, 60 s for a
 * request, 120 s of silence between requests; all of them in `OtlpHttpReceiverConfig`.
 */
export class OtlpHttpReceiver implements Component {
  readonly name = 'otlp-http-receiver';
  /** Answers requests that arrived on another listener. */
  readonly answer: RequestListener;
  private readonly listener: HttpListener;
  private readonly handler: ExportHandler;

  constructor(
    config: OtlpHttpReceiverConfig,
    private readonly deps: OtlpHttpReceiverDeps,
  ) {
    this.handler = new ExportHandler(deps.intake, deps.gate);
    const listenerConfig = { ...config, option: '--http HOST:PORT', handlerContinues: true };
    this.answer = this.createAnswer();
    this.listener = new HttpListener(listenerConfig, this.answer, deps.logger);
    deps.health.register(this.name, () => this.check());
  }

  /** @throws Error before `start()` has resolved. */
  get address(): ListenAddress {
    return this.listener.address;
  }

  /** @throws ListenError */
  start(): Promise<void> {
    return this.listener.start();
  }

  get connectionCounts(): ConnectionCounts {
    return this.listener.connectionCounts;
  }

  shutdown(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }

  /** Express costs a request as much as reading it, so the two addresses to which nearly all of them go are answered without it. */
  private createAnswer(): RequestListener {
    const app = this.createApp();
    return (request, response) => {
      const signal = request.method === 'POST' ? HOT_PATHS.get(request.url) : undefined;
      if (signal === undefined) app(request, response);
      else
        this.handler
          .handle(signal, '', request, response)
          .catch((error: unknown) => this.refuse(error, request, response));
    };
  }

  private createApp(): Express {
    const app = express();
    app.disable('x-powered-by').disable('etag');
    // Other spellings of the same addresses, and endpoints whose path says job, environment and project.
    for (const signal of ['traces', 'logs'] as const) {
      app.post([`/v1/${signal}`, `/*scope/v1/${signal}`], (request, response) =>
        this.handler.handle(signal, request.path.replace(OTLP_PATH, ''), request, response),
      );
    }
    app.all(['/v1/traces', '/v1/logs', '/*scope/v1/traces', '/*scope/v1/logs'], (request) => {
      throw new RequestError('method', `${request.path} accepts only POST, not ${request.method}.`);
    });
    app.use(healthRouter(this.deps.health));
    for (const router of this.deps.routers ?? []) app.use(router);
    app.use((request) => {
      throw new RequestError('unknown_path', unknownPath(request.path));
    });
    app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
      this.refuse(error, request, response);
    });
    return app;
  }

  private refuse(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    const { intake } = this.deps;
    const refusal = intake.refuse(error);
    if (response.headersSent || response.destroyed) return;
    const codec = intake.codecs[findEncoding(request.headers) ?? 'json'];
    const body = codec.encodeStatus(refusal.grpcCode, refusal.message);
    const headers = {
      ...refusal.headers,
      'Content-Type': MEDIA_TYPES[codec.encoding],
      'Content-Length': body.byteLength,
    };
    response.writeHead(refusal.status, headers).end(body);
  }

  private check(): HealthState {
    const details = {
      connectionCount: this.listener.connectionCount,
      droppedConnectionCount: this.listener.droppedConnectionCount,
      inFlightBytes: this.deps.intake.inFlightBytes,
    };
    if (this.listener.isOpen) return { ready: true, details: { ...details, url: this.address.url } };
    return { ready: false, reason: 'not listening: starting or shutting down', details };
  }
}

function unknownPath(path: string): string {
  return path.endsWith('/v1/metrics')
    ? NO_METRICS
    : 'Nothing is here; send OTLP to POST /v1/traces or POST /v1/logs, also below /job/NAME, /environment/NAME and /project/NAME; ask for health at GET /healthz or GET /readyz.';
}

/** The receiver's address; time-outs and connections as in `HttpListenerConfig`. */
export type OtlpHttpReceiverConfig = Omit<HttpListenerConfig, 'option' | 'handlerContinues'>;

/** What senders append to an endpoint. */
const OTLP_PATH = /\/v1\/(?:traces|logs)\/?$/i;

/** Answers POST /v1/traces and /v1/logs: header, body, records, and 200 once they are durable. */
export class ExportHandler {
  /** @param gate asked before anything is read; everybody may send, for the first account, where it is left out */
  constructor(
    private readonly intake: ExportIntake,
    private readonly gate?: SenderGate,
  ) {}

  /**
   * @param scopePath of the endpoint, without what senders append to it
   * @throws RequestError, ShortageError, OtlpDecodeError, ConsumeError, which `refusalOf` turns into answers.
   */
  async handle(signal: Signal, scopePath: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const admitted = await this.gate?.admit(request.headers.authorization, request.socket.remoteAddress ?? '');
    const sender = { accountId: admitted ?? null, scope: parseScopePath(scopePath) };
    const encoding = parseEncoding(request.headers);
    const coding = parseContentCoding(request.headers['content-encoding']);
    const announcedBytes = parseContentLength(request.headers) ?? 0;
    const room = this.intake.makeRoom(announcedBytes);
    response.once('close', () => room.reservation.release());
    if (request.headers.expect !== undefined) response.writeContinue();

    const body = await readBody(request, { coding, announcedBytes }, room);
    const answer = await this.intake.take(signal, encoding, body, sender);
    const headers = { 'Content-Type': MEDIA_TYPES[encoding], 'Content-Length': answer.byteLength };
    response.writeHead(200, headers);
    // Without a body Node writes the header in one piece; with one, even an empty one, in two.
    if (answer.byteLength === 0) response.end();
    else response.end(answer);
  }
}
