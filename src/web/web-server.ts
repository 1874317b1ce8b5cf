import express, { type Express, type NextFunction, type Request, type Response, type Router } from 'express';
import { failure } from '../api/envelope.js';
import type { Health } from '../core/health.js';
import { healthRouter } from '../core/health-router.js';
import {
  type ConnectionCounts,
  HttpListener,
  type HttpListenerConfig,
  type ListenAddress,
} from '../core/http-listener.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';

/** The web server's address; timeouts and connections as in `HttpListenerConfig`. */
export type WebServerConfig = Omit<HttpListenerConfig, 'option' | 'handlerContinues'>;

/** Dependencies of the web server. */
export interface WebServerDeps {
  readonly logger: Logger;
  /** Where the server registers its check; also served at `/healthz` and `/readyz`. */
  readonly health: Health;
  /** Routers at `/`, in this order, after health. */
  readonly routers: readonly Router[];
  /** The text at `/` if no router answers it. Default: that of a whole program. */
  readonly about?: string;
}

const ABOUT = `run-bridge keeps the telemetry of runs and passes it on.

This port is for people and tools. In a browser, / is a page with the runs (sign in with a token).
  GET /healthz            is the process alive?
  GET /readyz             can it do its work?
  GET /readyz?verbose     the same, each check with its details
  GET /metrics            the same and more in figures, for Prometheus (text and OpenMetrics)
  GET /runs/1001          the page of a run; GET /webhooks those of webhooks
  GET /runs/by-trace/ID   leads to the run of a trace
  POST /hooks/platform    webhooks of the hosted platform, where they are set up
  GET /api/run-bridge/v1  who answers here, and where the other port is, for programs
  GET /api/openapi.json   the API: runs, nodes, records, events, SQL (OpenAPI 3.1)

Telemetry goes to the other port: POST /v1/traces and POST /v1/logs (OTLP over HTTP, 127.0.0.1:4318 by default; over gRPC 127.0.0.1:4317).
`;

/** Paths at which clients of the hosted platform request its Discovery API. */
const GRAPHQL_PATHS = ['/graphql', '/beta/graphql'];
const NO_GRAPHQL =
  'run-bridge has no Discovery API (GraphQL). What it knows of runs is in GET /api/openapi.json, and SQL over all of it at POST /api/run-bridge/v1/query.';

/** The web server: health, and all mounted routers. */
export class WebServer implements Component {
  readonly name = 'web-server';
  private readonly listener: HttpListener;

  constructor(
    config: WebServerConfig,
    private readonly deps: WebServerDeps,
  ) {
    this.listener = new HttpListener({ ...config, option: '--web HOST:PORT' }, this.createApp(), deps.logger);
    deps.health.register(this.name, () =>
      this.listener.isOpen
        ? { ready: true, details: { url: this.address.url, connectionCount: this.listener.connectionCount } }
        : { ready: false, reason: 'not listening: starting or shutting down' },
    );
  }

  /** The address on which it listens. @throws Error before `start()` has resolved */
  get address(): ListenAddress {
    return this.listener.address;
  }

  get connectionCounts(): ConnectionCounts {
    return this.listener.connectionCounts;
  }

  /** Opens the port. @throws ListenError */
  start(): Promise<void> {
    return this.listener.start();
  }

  shutdown(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }

  private createApp(): Express {
    const app = express();
    app.disable('x-powered-by').disable('etag');
    app.use(healthRouter(this.deps.health));
    app.use(GRAPHQL_PATHS, (_request, response) => {
      response.status(404).json({ ...failure(404, NO_GRAPHQL), errors: [{ message: NO_GRAPHQL }] });
    });
    for (const router of this.deps.routers) app.use(router);
    app.get('/', (_request, response) => {
      response.type('text/plain').send(this.deps.about ?? ABOUT);
    });
    app.use((_request, response) => {
      response.status(404).type('text/plain').send('Nothing is here; GET / says what there is.\n');
    });
    app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
      this.fail(error, response);
    });
    return app;
  }

  private fail(error: unknown, response: Response): void {
    // The client may have gone; that is no error of this program.
    if (response.destroyed) return;
    const status = clientErrorStatus(error);
    if (status === 500 || response.headersSent) {
      this.deps.logger.error({ stack: error instanceof Error ? error.stack : String(error) }, 'request failed');
    }
    if (response.headersSent) {
      // The client notices that the response is incomplete.
      response.destroy();
      return;
    }
    const text = status === 500 ? 'run-bridge failed on this request; see its log.' : 'This request cannot be read.';
    response.status(status).type('text/plain').send(`${text}\n`);
  }
}

/** Returns the status of an error: Express's errors about the request (a path or body that it cannot read) have a 4xx; anything else is 500. */
function clientErrorStatus(error: unknown): number {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : 500;
}
