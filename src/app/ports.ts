import type { Router } from 'express';
import { aboutRouter } from '../api/about-router.js';
import { METRICS_PATH } from '../api/metrics-path.js';
import type { Configuration } from '../config/configuration.js';
import { destinationOrigins } from '../config/otlp-destinations.js';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import { arePagesLocal, type ConnectionCounts, HostCheck, isLoopback } from '../core/http-listener.js';
import { type Component, ComponentGroup } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Metrics } from '../metric/feature.js';
import { createReceivers, type ExportIntake, type Receivers } from '../receiver/feature.js';
import { lazyRouter } from '../web/lazy-router.js';
import { WebServer } from '../web/web-server.js';
import type { Access } from './access.js';
import type { Api } from './api.js';

/** Dependencies of the ports. */
export interface PortsDeps {
  readonly intake: ExportIntake;
  readonly access: Access;
  readonly api: Api;
  /** Receives webhooks of the hosted platform, or answers that they are off. */
  readonly hook: Router;
  readonly health: Health;
  /** Addresses and names of this machine. */
  readonly ownHosts: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** The program's version. */
  readonly version: string;
}

/** All ports of the program: OTLP over HTTP and gRPC, and the web port. */
export class Ports {
  static async create(configuration: Configuration, deps: PortsDeps): Promise<Ports> {
    const { access, api, hook, health, logger } = deps;
    const { http, grpc, web, chosen } = configuration;
    const publicUrl = configuration['public-url'] === 'off' ? null : configuration['public-url'];
    const hosts = new HostCheck(namesOf(configuration, deps.ownHosts), logger);
    const about = {
      version: deps.version,
      otlpAddress: () => ports.receiving.httpAddress,
      webAddress: () => ports.web.address,
      publicUrl,
      // For programs that check whether this one would send their telemetry back to them.
      exportsTo: destinationOrigins(configuration).flatMap(({ origins }) => origins),
    };
    const receiving = await createReceivers(
      {
        http: { ...http, hosts },
        grpc: grpc === 'off' ? grpc : { ...grpc, hosts, isOptional: !chosen.has('grpc') },
      },
      {
        ...deps,
        gateAt: (host) => access.gateAt(host),
        routers: [aboutRouter(about, 'otlp'), api.executions(http.host), api.uploads()],
      },
    );
    const routers = [
      aboutRouter(about, 'web'),
      api.executions(web.host),
      hook,
      api.pages(),
      api.metrics(),
      api.whole(),
      api.lost(),
    ];
    const webServer = new WebServer({ ...web, hosts }, { logger, health, routers });
    const ports: Ports = new Ports(receiving, webServer, access, publicUrl);
    return ports;
  }

  /** OTLP over HTTP, and over gRPC if it is on. */
  readonly receivers: Component;

  private constructor(
    private readonly receiving: Receivers,
    readonly web: WebServer,
    private readonly access: Access,
    private readonly publicUrl: string | null,
  ) {
    this.receivers = new ComponentGroup('receivers', receiving.components);
  }

  /** The numbers of connections by port, named like its setting. */
  get connectionCounts(): Readonly<Record<string, ConnectionCounts>> {
    return { ...this.receiving.connectionCounts, web: this.web.connectionCounts };
  }

  /** The URL of OTLP over HTTP; available after the start. */
  get otlpUrl(): string {
    return this.receiving.httpAddress.url;
  }

  /** Whether OTLP over HTTP needs a token; available after the start. */
  get isTokenNeeded(): boolean {
    return !this.access.isOpen(this.receiving.httpAddress.host);
  }

  /** The URL of OTLP over gRPC; `null` if it is off. Available after the start. */
  get grpcUrl(): string | null {
    return this.receiving.grpcUrl;
  }

  /** The URL of health, the API and the pages; available after the start. */
  get webUrl(): string {
    return this.web.address.url;
  }

  /** Where links sign in to the pages; `null` where other machines can reach them. Available after the start. */
  get signInUrl(): string | null {
    const { host, url } = this.web.address;
    if (isLoopback(host)) return url;
    return arePagesLocal(host, this.publicUrl) ? this.publicUrl : null;
  }
}

/** Dependencies of a port without pages and API. */
export interface StatusPortDeps extends Pick<PortsDeps, 'access' | 'health' | 'ownHosts' | 'logger'> {
  readonly metrics: Pick<Metrics, 'router'>;
  /** Sentences for `/` about what the program does and where the rest is. */
  readonly about: { readonly does: string; readonly elsewhere: string };
}

/** Creates the web port of a program that has no runs: health, metrics, and a description. */
export function createStatusPort(
  configuration: Pick<Configuration, 'http' | 'grpc' | 'web' | 'public-url' | 'allowed-hosts'>,
  { access, health, ownHosts, logger, metrics, about }: StatusPortDeps,
): WebServer {
  const { web } = configuration;
  const hosts = new HostCheck(namesOf(configuration, ownHosts), logger);
  const router = lazyRouter(METRICS_PATH, async () => {
    const { apiRouter } = await import('../api/api-router.js');
    const { authenticator } = access;
    return apiRouter({ authenticator, isOpen: access.isOpen(web.host), routers: [await metrics.router()], logger });
  });
  const text = `${about.does}\n${STATUS_PATHS}\n${about.elsewhere}\n`;
  return new WebServer({ ...web, hosts }, { logger, health, routers: [router], about: text });
}

const STATUS_PATHS = `
  GET /healthz            is the process alive?
  GET /readyz             can it do its work?
  GET /readyz?verbose     the same, each check with its details
  GET /metrics            the same and more in figures, for Prometheus (text and OpenMetrics)
`;

/** Returns the host names of the ports. */
export function namesOf(
  {
    http,
    grpc,
    web,
    'public-url': publicUrl,
    'allowed-hosts': allowed,
  }: Pick<Configuration, 'http' | 'grpc' | 'web' | 'public-url' | 'allowed-hosts'>,
  ownHosts: readonly string[],
): readonly string[] {
  const listening = [http, web, ...(grpc === 'off' ? [] : [grpc])].map(({ host }) => host);
  return [...ownHosts, ...listening, ...(publicUrl === 'off' ? [] : [new URL(publicUrl).hostname]), ...allowed];
}
