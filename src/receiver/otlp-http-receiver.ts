import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Clock } from '../component/clock.js';
import type { Component } from '../component/component.js';
import type { Guard } from '../component/guard.js';
import type { Health, HealthState } from '../component/health.js';
import { HttpListener, type ListenAddress } from '../component/http-listener.js';
import type { Logger } from '../component/logger.js';
import type { BodyDecoder, RequestDecoder } from '../decode/request-decoder.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { RecordConsumer } from '../record/record-consumer.js';
import { ByteBudget } from './byte-budget.js';
import { ExportHandler } from './export-handler.js';
import { healthRouter } from './health-router.js';
import {
  DEFAULT_MAX_BODY_BYTES,
  DEFAULT_MAX_IN_FLIGHT_BYTES,
  type OtlpHttpReceiverConfig,
} from './otlp-http-receiver-config.js';
import { refusalOf } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import { RequestError } from './request-error.js';
import { findEncoding, MEDIA_TYPES } from './request-format.js';

/** What the receiver works with. */
export interface OtlpHttpReceiverDeps {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly decoder: RequestDecoder;
  /** Reads requests in protobuf from their bytes; without it they go through `codecs` and `decoder`. */
  readonly protobuf?: Readonly<Record<Signal, BodyDecoder>>;
  readonly consumer: RecordConsumer;
  /** Asked before a body is read; none when left out. */
  readonly guards?: readonly Guard[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets the receiver's own check, and is answered at `/healthz` and `/readyz`. */
  readonly health: Health;
}

/**
 * OTLP over HTTP: POST /v1/traces and /v1/logs in protobuf and JSON, plain, gzip or deflate. 200 is sent when the consumer
 * has made the records durable, not before. Limits: what its guards say, 64 MiB a body, 256 MiB for all bodies in flight, 1,024 connections,
 * 15 s for a header, 60 s for a request, 120 s of silence between requests; all of them in `OtlpHttpReceiverConfig`.
 */
export class OtlpHttpReceiver implements Component {
  readonly name = 'otlp-http-receiver';
  private readonly listener: HttpListener;
  private readonly budget: ByteBudget;
  private readonly handler: ExportHandler;
  private readonly refusals: RefusalLog;

  constructor(
    config: OtlpHttpReceiverConfig,
    private readonly deps: OtlpHttpReceiverDeps,
  ) {
    const maxInFlightBytes = config.maxInFlightBytes ?? DEFAULT_MAX_IN_FLIGHT_BYTES;
    const maxBodyBytes = Math.min(config.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES, maxInFlightBytes);
    this.budget = new ByteBudget(maxInFlightBytes);
    this.refusals = new RefusalLog(deps.clock, deps.logger);
    const guards = deps.guards ?? [];
    this.handler = new ExportHandler({ ...deps, guards, budget: this.budget, refusals: this.refusals, maxBodyBytes });
    const listenerConfig = { ...config, option: '--http HOST:PORT', handlerContinues: true };
    this.listener = new HttpListener(listenerConfig, this.createApp(), deps.logger);
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

  shutdown(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }

  private createApp(): Express {
    const app = express();
    app.disable('x-powered-by').disable('etag');
    // The two hot routes come first: Express tries its routes in order.
    app.post('/v1/traces', (request, response) => this.handler.handle('traces', request, response));
    app.post('/v1/logs', (request, response) => this.handler.handle('logs', request, response));
    app.all(['/v1/traces', '/v1/logs'], (request) => {
      throw new RequestError('method', `${request.path} takes POST alone, not ${request.method}.`);
    });
    app.use(healthRouter(this.deps.health));
    app.use((request) => {
      throw new RequestError('unknown_path', unknownPath(request.path));
    });
    app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
      this.refuse(error, request, response);
    });
    return app;
  }

  private refuse(error: unknown, request: Request, response: Response): void {
    const refusal = refusalOf(error);
    this.refusals.add(refusal, error);
    if (response.headersSent || response.destroyed) return;
    const codec = this.deps.codecs[findEncoding(request.headers) ?? 'json'];
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
      inFlightBytes: this.budget.usedBytes,
    };
    if (this.listener.isOpen) return { ready: true, details: { ...details, url: this.address.url } };
    return { ready: false, reason: 'not listening: starting or shutting down', details };
  }
}

function unknownPath(path: string): string {
  return path === '/v1/metrics'
    ? 'run-bridge takes traces and logs; it has no use for metrics: set OTEL_METRICS_EXPORTER=none at the sender.'
    : 'Nothing is here; send OTLP to POST /v1/traces or POST /v1/logs, ask for health at GET /healthz or GET /readyz.';
}
