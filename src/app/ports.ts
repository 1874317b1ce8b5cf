import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import { originsOf, otlpDestinations } from '../config/otlp-destinations.js';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import { HostCheck } from '../core/host-check.js';
import type { ConnectionCounts } from '../core/http-listener.js';
import { type Component, ComponentGroup } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { aboutRouter } from '../receiver/about-router.js';
import type { ExportIntake } from '../receiver/export-intake.js';
import { OtlpGrpcReceiver } from '../receiver/grpc/otlp-grpc-receiver.js';
import { OtlpHttpReceiver } from '../receiver/otlp-http-receiver.js';
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
  /** OTLP over HTTP, and over gRPC where that is on. */
  readonly receivers: Component;
  readonly web: WebServer;
  private readonly http: OtlpHttpReceiver;
  private readonly grpc: OtlpGrpcReceiver | undefined;

  constructor(
    configuration: Configuration,
    private readonly deps: PortsDeps,
  ) {
    const { intake, access, api, hook, health, clock, logger } = deps;
    const { http, grpc, web } = configuration;
    const hosts = new HostCheck(namesOf(configuration, deps.ownHosts), logger);
    const about = {
      version: deps.version,
      otlpAddress: () => this.http.address,
      webAddress: () => this.web.address,
      // For whoever asks whether this program would send its telemetry back.
      exportsTo: otlpDestinations(configuration).flatMap(originsOf),
    };
    this.http = new OtlpHttpReceiver(
      { ...http, hosts },
      {
        intake,
        logger,
        health,
        gate: access.gateAt(http.host),
        routers: [aboutRouter(about, 'otlp'), api.executions(http.host), api.uploads()],
      },
    );
    const httpUrl = () => this.otlpUrl;
    this.grpc =
      grpc === 'off'
        ? undefined
        : new OtlpGrpcReceiver(
            { ...grpc, hosts, isOptional: !configuration.chosen.has('grpc') },
            { intake, gate: access.gateAt(grpc.host), clock, logger, health, httpUrl },
          );
    this.receivers = new ComponentGroup('receivers', [this.http, ...(this.grpc === undefined ? [] : [this.grpc])]);
    const routers = [
      aboutRouter(about, 'web'),
      api.executions(web.host),
      hook,
      api.pages(),
      api.metrics(),
      api.whole(),
    ];
    this.web = new WebServer({ ...web, hosts }, { logger, health, routers });
  }

  /** By the port, named as its setting is. */
  get connectionCounts(): Readonly<Record<string, ConnectionCounts>> {
    const { http, grpc, web } = this;
    return {
      http: http.connectionCounts,
      web: web.connectionCounts,
      ...(grpc !== undefined && { grpc: grpc.connectionCounts }),
    };
  }

  /** Where OTLP is received; only after the start. */
  get otlpUrl(): string {
    return this.http.address.url;
  }

  /** Whether OTLP over HTTP needs a token; only after the start. */
  get isTokenNeeded(): boolean {
    return !this.deps.access.isOpen(this.http.address.host);
  }

  /** Where OTLP is received over gRPC; `null` where it is not. Only after the start. */
  get grpcUrl(): string | null {
    return this.grpc?.address?.url ?? null;
  }

  /** Where health, the API and pages are; only after the start. */
  get webUrl(): string {
    return this.web.address.url;
  }
}

/** Names of the ports for people and programs. */
function namesOf(
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
