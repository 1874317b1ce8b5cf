import type { RequestListener } from 'node:http';
import type { Router } from 'express';
import type { Clock } from '../core/clock.js';
import { Health } from '../core/health.js';
import type { ConnectionCounts, ListenAddress } from '../core/http-listener.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../core/sender-gate.js';
import type { ExportIntake } from './export-intake.js';
import type { OtlpGrpcReceiverConfig } from './grpc/grpc-services.js';
import type { OtlpHttpReceiverConfig } from './otlp-http-receiver.js';

// The door of the receivers: other folders import only this file. Express and gRPC are loaded when receivers are
// created.

export {
  type AcceptedBody,
  type BodyConsumer,
  DecodedBodies,
  ExportIntake,
  type IntakeCounts,
  inFlightLimit,
  itemCountOf,
} from './export-intake.js';

/** The addresses and limits of the receivers. */
export interface ReceiversConfig {
  readonly http: OtlpHttpReceiverConfig;
  readonly grpc: OtlpGrpcReceiverConfig | 'off';
}

/** Parts of the program that receivers use. */
export interface ReceiversHost {
  readonly intake: ExportIntake;
  /** Returns the gate that checks the senders to a port. @param host the address on which it listens */
  readonly gateAt: (host: string) => SenderGate;
  /** Routers on the HTTP port, after OTLP's paths and health. */
  readonly routers: readonly Router[];
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** OTLP over HTTP, and over gRPC if it is on. */
export interface Receivers {
  readonly components: readonly Component[];
  /** The address of OTLP over HTTP; available after the start. */
  readonly httpAddress: ListenAddress;
  /** The URL of OTLP over gRPC; `null` if it is off. Available after the start. */
  readonly grpcUrl: string | null;
  /** The numbers of connections by port, named like its setting. */
  readonly connectionCounts: Readonly<Record<string, ConnectionCounts>>;
}

/** Creates the receivers of a configuration, which share one intake. */
export async function createReceivers(config: ReceiversConfig, host: ReceiversHost): Promise<Receivers> {
  const [{ OtlpHttpReceiver }, { OtlpGrpcReceiver }] = await Promise.all([
    import('./otlp-http-receiver.js'),
    import('./grpc/otlp-grpc-receiver.js'),
  ]);
  const { intake, gateAt, routers, health, clock, logger } = host;
  const http = new OtlpHttpReceiver(config.http, { intake, logger, health, gate: gateAt(config.http.host), routers });
  const grpc =
    config.grpc === 'off'
      ? undefined
      : new OtlpGrpcReceiver(config.grpc, {
          intake,
          gate: gateAt(config.grpc.host),
          clock,
          logger,
          health,
          httpUrl: () => http.address.url,
        });
  return {
    components: grpc === undefined ? [http] : [http, grpc],
    get httpAddress() {
      return http.address;
    },
    get grpcUrl() {
      return grpc?.address?.url ?? null;
    },
    get connectionCounts() {
      return { http: http.connectionCounts, ...(grpc !== undefined && { grpc: grpc.connectionCounts }) };
    },
  };
}

/** Returns a handler for OTLP requests on a listener of the caller. */
export async function otlpHandler(intake: ExportIntake, logger: Logger): Promise<RequestListener> {
  const { OtlpHttpReceiver } = await import('./otlp-http-receiver.js');
  // The receiver's listener is never started.
  return new OtlpHttpReceiver({ host: '127.0.0.1', port: 0 }, { intake, logger, health: new Health() }).answer;
}
