import { constants, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { type Socket, Server as TcpServer } from 'node:net';
import { Duplex } from 'node:stream';
import {
  type ConnectionInjector,
  type handleClientStreamingCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerErrorResponse,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerReadableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { Clock, Timer } from '../../core/clock.js';
import type { HostCheck } from '../../core/http-listener.js';
import type { SenderGate } from '../../core/sender-gate.js';
import type { OtlpCodec } from '../../otlp/otlp-codec.js';
import {
  type BodyBuffer,
  type BodyRoom,
  type ContentCoding,
  parseContentCoding,
  readBody,
} from '../../otlp/read-body.js';
import { NO_METRICS, type Refusal, RequestError } from '../../otlp/refusal.js';
import type { Signal } from '../../record/record-batch.js';
import type { ExportIntake } from '../export-intake.js';

/** The receiver's address and limits. */
export interface OtlpGrpcReceiverConfig {
  readonly host: string;
  /** 0 lets the system choose a free port. */
  readonly port: number;
  /** The host names that are answered at loopback addresses; calls to others get 421 and PERMISSION_DENIED. Default: all. */
  readonly hosts?: HostCheck | undefined;
  /** Whether the program continues without this receiver if another program has the port. Default false. */
  readonly isOptional?: boolean | undefined;
  /** The most open connections; further ones are closed at once. Default 1,024. */
  readonly maxConnections?: number | undefined;
  /** The most concurrent calls per connection; clients queue further ones. Default 100. */
  readonly maxCallsPerConnection?: number | undefined;
  /** The time until the first 24 bytes of a connection, which identify HTTP/2, have arrived. Default 15 s. */
  readonly prefaceTimeoutMs?: number | undefined;
  /** The time until a call's message is complete; then DEADLINE_EXCEEDED. Default 60 s. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long a connection may be without a call; then it is closed with a GOAWAY, and after the same time again cut off. Default 120 s. */
  readonly idleTimeoutMs?: number | undefined;
  /** The interval of pings; a connection has 20 s to answer. Default 10 s. Node does not notice that the sender of a connection with a protocol error has gone, so an unanswered ping closes it. */
  readonly keepaliveMs?: number | undefined;
}

const COLLECTOR = '/opentelemetry.proto.collector';

/** How long data that arrives after a refusal is discarded, in milliseconds, so that the sender can read its response. */
const AFTER_REFUSAL_MS = 2_000;

/** Dependencies of the services. */
export interface GrpcServicesDeps {
  readonly intake: ExportIntake;
  /** Checked before a message is read. Default: everybody may send. */
  readonly gate?: SenderGate | undefined;
  readonly clock: Clock;
}

type Call = ServerReadableStream<Buffer, Uint8Array>;
type Respond = sendUnaryData<Uint8Array>;
type MakeRoom = (announcedBytes: number) => BodyRoom;

/** Serves OTLP's TraceService and LogsService on given connections. grpc-js handles HTTP/2 and gRPC; messages are read, decoded and stored like those over HTTP. Loading this file loads grpc-js. */
export class GrpcServices {
  private readonly server: Server;
  private readonly connections: ConnectionInjector;
  private readonly idleTimeoutMs: number;
  /** The idle watches of connections, by the sender's address and port in grpc-js's notation. */
  private readonly watches = new Map<string, IdleWatch>();
  /** Calls whose headers have arrived and whose handler was not called yet, by their metadata. */
  private readonly incoming = new WeakMap<Metadata, IncomingCall>();

  constructor(
    private readonly config: OtlpGrpcReceiverConfig,
    private readonly deps: GrpcServicesDeps,
  ) {
    this.idleTimeoutMs = config.idleTimeoutMs ?? 120_000;
    this.server = new Server({
      'grpc.enable_channelz': 0,
      'grpc.max_concurrent_streams': config.maxCallsPerConnection ?? 100,
      'grpc.max_connection_idle_ms': this.idleTimeoutMs,
      'grpc.keepalive_time_ms': config.keepaliveMs ?? 10_000,
      'grpc.keepalive_timeout_ms': 20_000,
      interceptors: [this.interceptor()],
    });
    this.serve(`${COLLECTOR}.trace.v1.TraceService/Export`, (call, respond) => this.export('traces', call, respond));
    this.serve(`${COLLECTOR}.logs.v1.LogsService/Export`, (call, respond) => this.export('logs', call, respond));
    this.serve(`${COLLECTOR}.metrics.v1.MetricsService/Export`, (_call, respond) =>
      this.refuse(new RequestError('unknown_method', NO_METRICS), respond),
    );
    this.connections = this.server.createConnectionInjector(ServerCredentials.createInsecure());
    for (const server of http2ServersOf(this.server)) this.guard(server);
  }

  /** Serves a connection. @param connection from which nothing was read */
  take(connection: Socket): void {
    const peer = `${connection.remoteAddress}:${connection.remotePort}`;
    this.watches.set(peer, new IdleWatch(connection, 2 * this.idleTimeoutMs, this.deps.clock));
    connection.once('close', () => this.watches.delete(peer));
    this.connections.injectConnection(connection);
  }

  /** Accepts no more calls; each connection ends with its last one. */
  drain(): void {
    this.server.tryShutdown(() => {});
    for (const watch of this.watches.values()) watch.drain();
  }

  /**
   * Keeps errors of a single connection from affecting the process. grpc-js answers a call without a content type, or to an unknown path, before it checks whether the call is still open, and throws
   * if its sender has reset it.
   */
  private guard(server: Http2Server): void {
    const handlers = server.listeners('stream');
    server.removeAllListeners('stream');
    server.on('session', (session) => session.on('error', () => {}));
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number) => {
      // A sender may end a call by a reset.
      stream.on('error', () => {});
      if (stream.destroyed || stream.closed) return;
      try {
        const host = headers[constants.HTTP2_HEADER_AUTHORITY] ?? headers.host;
        const problem = this.config.hosts?.findProblem([host].flat()[0], stream.session?.socket.localAddress);
        if (problem !== undefined) {
          misdirect(stream, problem);
          return;
        }
        for (const handler of handlers) Reflect.apply(handler, server, [stream, headers, flags]);
      } catch (cause) {
        stream.close(constants.NGHTTP2_INTERNAL_ERROR);
        const { intake } = this.deps;
        intake.refuse(new RequestError('malformed', 'A call has headers that cannot be answered.', { cause }));
      }
    });
  }

  /** Registers a handler. For grpc-js the client streams, so that the handler is called before anything is read, and can refuse; `readMessage` checks that exactly one message arrives. */
  private serve(path: string, handler: handleClientStreamingCall<Buffer, Uint8Array>): void {
    const same = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.server.register(path, handler, same, same, 'clientStream');
  }

  private interceptor(): ServerInterceptor {
    return (_method, call) => {
      const incoming = takeOver(call);
      return new ServerInterceptingCall(call, {
        start: (next) =>
          next({
            onReceiveMetadata: (metadata, pass) => {
              if (incoming !== undefined) this.incoming.set(metadata, incoming);
              pass(metadata);
            },
          }),
      });
    };
  }

  private async export(signal: Signal, call: Call, respond: Respond): Promise<void> {
    const { intake, clock } = this.deps;
    const incoming = this.incoming.get(call.metadata);
    const watch = this.watches.get(call.getPeer());
    watch?.begin();
    let room: BodyRoom | undefined;
    try {
      if (incoming === undefined) throw new Error('this version of @grpc/grpc-js does not give its streams');
      const authorization = call.metadata.get('authorization')[0]?.toString();
      const accountId = (await this.deps.gate?.admit(authorization, addressOf(call.getPeer()))) ?? null;
      const coding = parseContentCoding(incoming.encoding);
      // Most refusals need not wait for the length, which arrives with the message.
      room = intake.makeRoom(0);
      const body = await this.read(incoming.stream, coding, (announcedBytes) => {
        room?.reservation.release();
        room = undefined;
        room = intake.makeRoom(announcedBytes);
        return room;
      });
      respond(null, await intake.take(signal, 'protobuf', body, { accountId, scope: {} }));
    } catch (error) {
      clock.after(AFTER_REFUSAL_MS, () => incoming?.stream.destroy());
      try {
        this.refuse(error, respond);
      } catch {
        // The call ended while it was being answered.
        incoming?.stream.destroy();
      }
    } finally {
      room?.reservation.release();
      watch?.end();
    }
  }

  private async read(stream: Duplex, coding: ContentCoding, makeRoom: MakeRoom): Promise<BodyBuffer> {
    const timeoutMs = this.config.requestTimeoutMs ?? 60_000;
    const stop = new AbortController();
    const timer = this.deps.clock.after(timeoutMs, () => stop.abort(tooSlow(timeoutMs)));
    try {
      return await readMessage(stream, coding, makeRoom, stop.signal);
    } finally {
      timer.cancel();
    }
  }

  private refuse(error: unknown, respond: Respond): void {
    const { intake } = this.deps;
    respond(toServiceError(intake.refuse(error), intake.codecs.protobuf));
  }
}

function toServiceError(refusal: Refusal, codec: OtlpCodec): Partial<ServerErrorResponse> & { code: number } {
  const { grpcCode, retryAfterMs, message } = refusal;
  const metadata = new Metadata();
  if (refusal.reason === 'unsupported_encoding') metadata.set('grpc-accept-encoding', 'identity,deflate,gzip,zstd');
  if (retryAfterMs !== null) {
    const status = Buffer.concat([codec.encodeStatus(grpcCode, message), encodeRetryInfo(retryAfterMs)]);
    metadata.set('grpc-status-details-bin', status);
  }
  // grpc-js throws when it encodes an unpaired surrogate.
  return { code: grpcCode, details: Buffer.from(message).toString(), metadata };
}

/** Refuses a call for its host, with the statuses of both HTTP and gRPC, since clients read one or the other. */
function misdirect(stream: ServerHttp2Stream, problem: string): void {
  const headers = {
    [constants.HTTP2_HEADER_STATUS]: constants.HTTP_STATUS_MISDIRECTED_REQUEST,
    [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc',
    'grpc-status': status.PERMISSION_DENIED,
    'grpc-message': encodeURIComponent(problem),
  };
  stream.respond(headers, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Returns the HTTP/2 servers of a gRPC server. @throws Error if a version of grpc-js keeps these private fields elsewhere */
function http2ServersOf(server: Server): readonly Http2Server[] {
  const byServer: unknown = Reflect.get(server, 'http2Servers');
  const servers = byServer instanceof Map ? [...byServer.keys()].filter(isHttp2Server) : [];
  if (servers.length === 0) throw new Error('this version of @grpc/grpc-js does not give its server of HTTP/2');
  return servers;
}

function isHttp2Server(server: unknown): server is Http2Server {
  return server instanceof TcpServer;
}

/** Returns the address of a peer, which grpc-js writes as `127.0.0.1:4317` or `[::1]:4317`. */
function addressOf(peer: string): string {
  return peer.slice(0, peer.lastIndexOf(':')).replace(/^\[|\]$/g, '');
}

function tooSlow(timeoutMs: number): RequestError {
  return new RequestError('slow', `A message has to arrive within ${timeoutMs / 1_000} s; this one did not.`);
}

/** How long the last response of a connection may take to be sent, in milliseconds. */
const LAST_ANSWER_MS = 500;

/** Closes a connection that has had no call for some time. grpc-js closes idle ones with a GOAWAY, which Node delays while an unfinished header, or a call to an unknown service, is open. */
export class IdleWatch {
  private callCount = 0;
  private timer: Timer | undefined;

  /** @param idleMs how long the connection may be without a call */
  constructor(
    private readonly connection: Duplex,
    private idleMs: number,
    private readonly clock: Clock,
  ) {
    connection.once('close', () => this.timer?.cancel());
    this.wait();
  }

  /** Notes the start of a call. */
  begin(): void {
    this.callCount += 1;
    this.timer?.cancel();
  }

  /** Notes the end of a call. */
  end(): void {
    this.callCount -= 1;
    if (this.callCount === 0) this.wait();
  }

  /** Closes the connection soon after its last call, since no more calls will arrive. */
  drain(): void {
    this.idleMs = LAST_ANSWER_MS;
    this.timer?.cancel();
    if (this.callCount === 0) this.wait();
  }

  private wait(): void {
    this.timer = this.clock.after(this.idleMs, () => this.connection.destroy());
  }
}

/** A call whose message has not been read yet. */
export interface IncomingCall {
  /** The call's HTTP/2 stream, paused. */
  readonly stream: Duplex;
  /** The compression of a message that is marked as compressed: the header `grpc-encoding`. */
  readonly encoding: string;
}

/**
 * Takes over reading a call's message from grpc-js, which would buffer and decompress all of it before its size can be checked: 20 calls with 60 kB each, compressed a thousandfold, take 1 GB.
 * grpc-js has no public way to do this, so two of its private fields are used.
 * @returns `undefined` if a version of grpc-js keeps them elsewhere
 */
export function takeOver(call: ServerInterceptingCallInterface): IncomingCall | undefined {
  const stream: unknown = Reflect.get(call, 'stream');
  const encoding: unknown = Reflect.get(call, 'incomingEncoding');
  if (!(stream instanceof Duplex) || typeof encoding !== 'string') return undefined;
  stream.removeAllListeners('data');
  return { stream, encoding };
}

/** The length of the prefix of a message: whether it is compressed, and its length in 4 bytes (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;

/**
 * Reads and decompresses the only message of a unary call, counting while it arrives.
 * @param stream paused; the rest of a message that was refused is discarded
 * @param coding of a message that is marked as compressed
 * @param makeRoom is called when the message's length is known; if it throws, reading ends
 * @param stop ends reading with its reason
 * @returns the message; the caller releases it
 * @throws RequestError `too_large`, `busy`, `malformed`, `aborted`; what `makeRoom` throws; the reason of `stop`
 */
export async function readMessage(
  stream: Duplex,
  coding: ContentCoding,
  makeRoom: (announcedBytes: number) => BodyRoom,
  stop: AbortSignal,
): Promise<BodyBuffer> {
  const prefix = await readPrefix(stream, stop);
  const isCompressed = prefix.readUInt8(0) === 1;
  const announcedBytes = prefix.readUInt32BE(1);
  if (prefix.readUInt8(0) > 1) throw new RequestError('malformed', 'The request is not a gRPC message.');
  if (isCompressed && coding === 'identity') {
    throw new RequestError('malformed', 'The message is marked as compressed, but there is no grpc-encoding header.');
  }
  const shape = { coding: isCompressed ? coding : 'identity', announcedBytes, isExact: true, stop } as const;
  const body = readBody(stream, shape, makeRoom(announcedBytes));
  stream.resume();
  return body;
}

function readPrefix(stream: Duplex, stop: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let head: Buffer = Buffer.alloc(0);
    stream.on('data', onData);
    stream.on('end', onEnd);
    stream.on('aborted', onAborted);
    stream.on('close', onAborted);
    stop.addEventListener('abort', onStop);
    if (stream.destroyed) onAborted();
    // A stream without bytes ends although it is paused, and emits 'end' only once.
    else if (stream.readableEnded) onEnd();
    else if (stop.aborted) onStop();
    else stream.resume();

    function onData(chunk: Buffer): void {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < PREFIX_BYTES) return;
      release();
      stream.pause();
      if (head.length > PREFIX_BYTES) stream.unshift(head.subarray(PREFIX_BYTES));
      resolve(head.subarray(0, PREFIX_BYTES));
    }

    function onEnd(): void {
      fail(new RequestError('malformed', 'A call has one message; this one ended before it.'));
    }

    function onAborted(): void {
      fail(new RequestError('aborted', 'The sender closed the connection before its whole message arrived.'));
    }

    function onStop(): void {
      fail(stop.reason);
    }

    function fail(error: unknown): void {
      release();
      reject(error);
    }

    function release(): void {
      stream.off('data', onData).off('end', onEnd).off('aborted', onAborted).off('close', onAborted);
      stop.removeEventListener('abort', onStop);
    }
  });
}

const TYPE_URL = 'type.googleapis.com/google.rpc.RetryInfo';
/** Field numbers with their wire types, length-delimited or varint (google/rpc/status.proto, error_details.proto). */
const STATUS_DETAILS = (3 << 3) | 2;
const ANY_TYPE_URL = (1 << 3) | 2;
const ANY_VALUE = (2 << 3) | 2;
const RETRY_DELAY = (1 << 3) | 2;
const DURATION_SECONDS = 1 << 3;
const DURATION_NANOS = 2 << 3;

/** Encodes when a sender may try again as the field `details` of a `google.rpc.Status`, to be appended to an encoded Status. */
export function encodeRetryInfo(retryAfterMs: number): Uint8Array {
  const seconds = Math.floor(retryAfterMs / 1_000);
  const nanos = (retryAfterMs % 1_000) * 1_000_000;
  return protobuf.Writer.create()
    .uint32(STATUS_DETAILS)
    .fork()
    .uint32(ANY_TYPE_URL)
    .string(TYPE_URL)
    .uint32(ANY_VALUE)
    .fork()
    .uint32(RETRY_DELAY)
    .fork()
    .uint32(DURATION_SECONDS)
    .uint32(seconds)
    .uint32(DURATION_NANOS)
    .uint32(nanos)
    .ldelim()
    .ldelim()
    .ldelim()
    .finish();
}
