import type { Router } from 'express';
import { aboutRouter } from '../api/about-router.js';
import type { Configuration } from '../config/configuration.js';
import { destinationPlaces } from '../config/otlp-destinations.js';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import { type ConnectionCounts, HostCheck } from '../core/http-listener.js';
import { type Component, ComponentGroup } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { createReceivers, type ExportIntake, type Receivers } from '../receiver/feature.js';
import { WebServer } from '../web/web-server.js';
import type { Access } from './access.js';
import type { Api } from './api.js';

/** What stands behind the ports. */
export interface PortsDeps {
  readonly intake: ExportIntake;
  readonly access: Access;
  readonly api: Api;
  /** Takes webhooks of the hosted platform, or says that they are off. */
  readonly hook: Router;
  readonly health: Health;
  /** Addresses and names of this machine. */
  readonly ownHosts: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** The program's version. */
  readonly version: string;
}

/** Everywhere the program listens: OTLP over HTTP and gRPC, and the port for people and tools. */
export class Ports {
  static async create(configuration: Configuration, deps: PortsDeps): Promise<Ports> {
    const { access, api, hook, health, logger } = deps;
    const { http, grpc, web, chosen } = configuration;
    const hosts = new HostCheck(namesOf(configuration, deps.ownHosts), logger);
    const about = {
      version: deps.version,
      otlpAddress: () => ports.receiving.httpAddress,
      webAddress: () => ports.web.address,
      publicUrl: configuration['public-url'] === 'off' ? null : configuration['public-url'],
      // For programs that ask whether this one would send their telemetry back.
      exportsTo: destinationPlaces(configuration).flatMap(({ places }) => places),
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
    const ports: Ports = new Ports(receiving, new WebServer({ ...web, hosts }, { logger, health, routers }), access);
    return ports;
  }

  /** OTLP over HTTP, and over gRPC where that is on. */
  readonly receivers: Component;

  private constructor(
    private readonly receiving: Receivers,
    readonly web: WebServer,
    private readonly access: Access,
  ) {
    this.receivers = new ComponentGroup('receivers', receiving.components);
  }

  /** By the port, named as its setting is. */
  get connectionCounts(): Readonly<Record<string, ConnectionCounts>> {
    return { ...this.receiving.connectionCounts, web: this.web.connectionCounts };
  }

  /** Where OTLP is received; only after the start. */
  get otlpUrl(): string {
    return this.receiving.httpAddress.url;
  }

  /** Whether OTLP over HTTP needs a token; only after the start. */
  get isTokenNeeded(): boolean {
    return !this.access.isOpen(this.receiving.httpAddress.host);
  }

  /** Where OTLP is received over gRPC; `null` where it is not. Only after the start. */
  get grpcUrl(): string | null {
    return this.receiving.grpcUrl;
  }

  /** Where health, the API and pages are; only after the start. */
  get webUrl(): string {
    return this.web.address.url;
  }
}

/** Names of the ports for people and programs. */
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
