import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../../core/clock.js';
import type { Health, HealthState } from '../../core/health.js';
import {
  type ConnectionCounts,
  DroppedConnections,
  type ListenAddress,
  ListenError,
  openPort,
} from '../../core/http-listener.js';
import { lazy } from '../../core/lazy.js';
import type { Component } from '../../core/lifecycle.js';
import type { Logger } from '../../core/logger.js';
import type { SenderGate } from '../../core/sender-gate.js';
import { RequestError } from '../../otlp/refusal.js';
import type { ExportIntake } from '../export-intake.js';
import type { OtlpGrpcReceiverConfig } from './grpc-services.js';

/** How long a sender may take to close a connection that was ended, in milliseconds. */
const AFTER_END_MS = 500;

/** Dependencies of the receiver. */
export interface OtlpGrpcReceiverDeps {
  readonly intake: ExportIntake;
  /** Checked before a message is read. Default: everybody may send. */
  readonly gate?: SenderGate | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the receiver registers its check. */
  readonly health: Health;
  /** Returns the URL of OTLP over HTTP, for the error message to senders on the wrong port. */
  readonly httpUrl: () => string;
}

/**
 * Receives OTLP over gRPC without TLS: TraceService/Export and LogsService/Export, uncompressed, gzip, deflate or zstd. OK is sent only after the consumer has made the records durable. The limits
 * are those of the intake and of `OtlpGrpcReceiverConfig`.
 *
 * grpc-js takes about 40 ms and 4 to 12 MiB, so it is loaded when the first HTTP/2 connection arrives.
 */
export class OtlpGrpcReceiver implements Component {
  readonly name = 'otlp-grpc-receiver';
  private readonly server: Server;
  private readonly dropped: DroppedConnections;
  private readonly connections = new Set<Socket>();
  /** Connections whose protocol is not known yet. */
  private readonly strangers = new Set<Socket>();
  private readonly services = lazy(async () => {
    const { GrpcServices } = await import('./grpc-services.js');
    return new GrpcServices(this.config, this.deps);
  });
  private boundAddress: ListenAddress | undefined;
  private whyOff = '';
  private isClosing = false;

  constructor(
    private readonly config: OtlpGrpcReceiverConfig,
    private readonly deps: OtlpGrpcReceiverDeps,
  ) {
    this.server = createServer((socket) => this.greet(socket));
    this.server.maxConnections = config.maxConnections ?? 1_024;
    this.dropped = new DroppedConnections(this.server, deps.logger);
    deps.health.register(this.name, () => this.check());
  }

  /** The address; `undefined` before `start()` has resolved, and if another program has the port. */
  get address(): ListenAddress | undefined {
    return this.boundAddress;
  }

  get connectionCounts(): ConnectionCounts {
    return { openCount: this.connections.size, droppedCount: this.dropped.count };
  }

  /** Opens the port. @throws ListenError */
  async start(): Promise<void> {
    const { logger } = this.deps;
    try {
      this.boundAddress = await openPort(this.server, { ...this.config, option: '--grpc HOST:PORT' });
    } catch (error) {
      if (!(error instanceof ListenError) || error.code !== 'in_use' || this.config.isOptional !== true) throw error;
      this.whyOff = error.message;
      logger.warn({ reason: error.message }, 'OTLP over gRPC is not received');
      return;
    }
    this.server.on('error', (error) => logger.error({ reason: error.message }, 'failed to accept a connection'));
  }

  /** Accepts no more connections and calls, and lets running calls finish; closes the rest when `deadline` aborts. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    if (this.isClosing || this.boundAddress === undefined) return;
    this.isClosing = true;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const cutOff = () => destroyAll(this.connections);
    deadline.addEventListener('abort', cutOff);
    if (deadline.aborted) cutOff();
    destroyAll(this.strangers);
    (await this.services.ifNeeded())?.drain();
    await closed;
    deadline.removeEventListener('abort', cutOff);
  }

  /** Detects the protocol of a connection before anything is loaded for it. */
  private greet(socket: Socket): void {
    const { clock } = this.deps;
    const timer = clock.after(this.config.prefaceTimeoutMs ?? 15_000, () => socket.destroy());
    this.connections.add(socket);
    this.strangers.add(socket);
    socket.once('close', () => {
      timer.cancel();
      this.connections.delete(socket);
      this.strangers.delete(socket);
    });
    // A sender may end a connection by a reset.
    socket.on('error', () => {});
    socket.once('finish', () => clock.after(AFTER_END_MS, () => socket.destroy()));
    let head: Buffer = Buffer.alloc(0);
    const look = () => {
      // Node 26 returns one piece at a time, older versions everything that has arrived.
      for (let piece: Buffer | null = socket.read(); piece !== null; piece = socket.read()) {
        head = Buffer.concat([head, piece]);
      }
      const protocol = tellProtocol(head);
      if (protocol === undefined) return;
      socket.off('readable', look);
      timer.cancel();
      this.strangers.delete(socket);
      if (protocol !== 'http2') this.turnAway(socket, protocol);
      else {
        socket.unshift(head);
        this.take(socket);
      }
    };
    socket.on('readable', look);
  }

  private take(socket: Socket): void {
    const { deps } = this;
    this.services.get().then(
      (services) => {
        if (this.isClosing || socket.destroyed) socket.destroy();
        else services.take(socket);
      },
      (error: unknown) => {
        deps.logger.error({ reason: String(error) }, 'failed to load gRPC');
        socket.destroy();
      },
    );
  }

  private turnAway(socket: Socket, protocol: Exclude<ConnectionProtocol, 'http2'>): void {
    const { message } = this.deps.intake.refuse(new RequestError('protocol', this.whyNot(protocol)));
    const text = `${message}\n`;
    const header = `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n`;
    socket.resume();
    if (protocol === 'http1') socket.end(header + text);
    else socket.destroy();
  }

  private whyNot(protocol: Exclude<ConnectionProtocol, 'http2'>): string {
    const { url } = this.boundAddress ?? { url: '' };
    switch (protocol) {
      case 'http1':
        return `${url} takes OTLP over gRPC alone; send OTLP over HTTP to ${this.deps.httpUrl()}.`;
      case 'tls':
        return `${url} takes gRPC without TLS; tell the sender so, with http:// in its endpoint or OTEL_EXPORTER_OTLP_INSECURE=true.`;
      case 'unknown':
        return `${url} takes OTLP over gRPC; what came is not HTTP/2.`;
    }
  }

  private check(): HealthState {
    const { connections, dropped, boundAddress } = this;
    const details = { connectionCount: connections.size, droppedConnectionCount: dropped.count };
    if (this.whyOff !== '') return { ready: true, details: { state: 'off', reason: this.whyOff } };
    if (boundAddress !== undefined && !this.isClosing) {
      return { ready: true, details: { ...details, url: boundAddress.url } };
    }
    return { ready: false, reason: 'not listening: starting or shutting down', details };
  }
}

function destroyAll(sockets: Iterable<Socket>): void {
  for (const socket of sockets) socket.destroy();
}

/** The protocol of a connection by its first bytes; `unknown` for anything else. */
export type ConnectionProtocol = 'http2' | 'http1' | 'tls' | 'unknown';

/** The first 24 bytes of every HTTP/2 connection (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** The type of a TLS record with a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 0x16;

/** Detects the protocol by a connection's first bytes; `undefined` while there are too few. */
export function tellProtocol(head: Buffer): ConnectionProtocol | undefined {
  const known = Math.min(head.length, PREFACE.length);
  if (head.subarray(0, known).equals(PREFACE.subarray(0, known))) return known < PREFACE.length ? undefined : 'http2';
  if (head[0] === TLS_HANDSHAKE) return 'tls';
  return /^[A-Z]{3,7} /.test(head.toString('latin1', 0, 8)) ? 'http1' : 'unknown';
}
