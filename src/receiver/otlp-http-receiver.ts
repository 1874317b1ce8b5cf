import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type Express, type NextFunction, type Request, type Response, type Router } from 'express';
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
import {
  findEncoding,
  MEDIA_TYPES,
  parseContentCoding,
  parseContentLength,
  parseEncoding,
  readBody,
} from '../otlp/read-body.js';
import { NO_METRICS, RequestError } from '../otlp/refusal.js';
import { parseScopePath } from '../otlp/scope-path.js';
import type { Signal } from '../record/record-batch.js';
import type { ExportIntake } from './export-intake.js';

/** The URLs of nearly all requests. */
const HOT_PATHS: ReadonlyMap<string | undefined, Signal> = new Map([
  ['/v1/traces', 'traces'],
  ['/v1/logs', 'logs'],
]);

/** Dependencies of the receiver. */
export interface OtlpHttpReceiverDeps {
  readonly intake: ExportIntake;
  readonly logger: Logger;
  /** Where the receiver registers its check; also served at `/healthz` and `/readyz`. */
  readonly health: Health;
  /** Checked before a body is read. Default: everybody may send. */
  readonly gate?: SenderGate | undefined;
  /** Routers at `/`, after OTLP's paths and health. Default: none. */
  readonly routers?: readonly Router[];
}

/**
 * Receives OTLP over HTTP: POST /v1/traces and /v1/logs in protobuf and JSON, uncompressed, gzip or deflate, also below a path that names job, environment and project (`/job/nightly/v1/traces`). 200
 * is sent only after the consumer has made the records durable. The limits are those of the intake, and of `OtlpHttpReceiverConfig`: 1,024 connections, 15 s for a header, 60 s for a request, 120 s
 * between requests.
 */
export class OtlpHttpReceiver implements Component {
  readonly name = 'otlp-http-receiver';
  /** Handles requests that arrive on another listener. */
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

  /** The address on which it listens. @throws Error before `start()` has resolved */
  get address(): ListenAddress {
    return this.listener.address;
  }

  /** Opens the port. @throws ListenError */
  start(): Promise<void> {
    return this.listener.start();
  }

  get connectionCounts(): ConnectionCounts {
    return this.listener.connectionCounts;
  }

  shutdown(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }

  /** Creates the request handler. Express takes as long for a request as reading it, so the two most common URLs bypass it. */
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
    // Other spellings of these URLs, and endpoints whose path names job, environment and project.
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

/** The receiver's address; timeouts and connections as in `HttpListenerConfig`. */
export type OtlpHttpReceiverConfig = Omit<HttpListenerConfig, 'option' | 'handlerContinues'>;

/** The path that senders append to an endpoint. */
const OTLP_PATH = /\/v1\/(?:traces|logs)\/?$/i;

/** Handles POST /v1/traces and /v1/logs: reads and decodes the body, and answers 200 when its records are durable. */
export class ExportHandler {
  /** @param gate is checked before anything is read; by default everybody may send, for the first account */
  constructor(
    private readonly intake: ExportIntake,
    private readonly gate?: SenderGate,
  ) {}

  /**
   * Handles a request.
   * @param scopePath path of the endpoint, without what senders append
   * @throws RequestError, ShortageError, OtlpDecodeError, ConsumeError, which `refusalOf` converts to responses
   */
  async handle(signal: Signal, scopePath: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const admitted = this.gate?.admit(request.headers.authorization, request.socket.remoteAddress ?? '') ?? null;
    // Without a turn of waiting the body's first piece, which comes with the header, goes straight to its reader.
    const accountId = admitted === null ? null : await admitted;
    const sender = { accountId, scope: parseScopePath(scopePath) };
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
