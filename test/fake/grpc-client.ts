import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';

/** How a call ended. */
export interface GrpcAnswer {
  /** gRPC's code; `undefined` where the call ended without one. */
  readonly code: number | undefined;
  readonly message: string;
  readonly headers: IncomingHttpHeaders;
  /** The messages that came, with their prefixes. */
  readonly body: Buffer;
  /** The `google.rpc.Status` of `grpc-status-details-bin`; empty where there is none. */
  readonly details: Buffer;
  /** HTTP/2's code of a stream that was reset. */
  readonly resetCode: number;
}

export const TRACES_PATH = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
export const LOGS_PATH = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';

/** A message as gRPC sends it. @param length as announced, where it is not the message's. */
export function frame(message: Uint8Array, flag = 0, length = message.byteLength): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag, 0);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

/** A connection's beginning, with a frame of SETTINGS that says nothing and one of HEADERS that announces others after it. */
export function endlessHeader(): Buffer {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const headers = Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x83]);
  return Buffer.concat([preface, settings, headers]);
}

/** A client of gRPC that sends whatever a test likes, over one connection of HTTP/2. */
export class GrpcClient {
  private readonly session: ClientHttp2Session;

  constructor(port: number) {
    // As much as a test likes to send: Node's own limit, 10 MB, would drop answers that come meanwhile.
    this.session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
    this.session.on('error', () => {});
  }

  /** Begins a call; the request goes on until it is ended. */
  begin(path = TRACES_PATH, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
    const fixed = { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc' };
    const stream = this.session.request({ ...fixed, ...headers });
    stream.on('error', () => {});
    return stream;
  }

  /** One call: sends the bytes as they are. */
  call(bytes: Uint8Array, path = TRACES_PATH, headers: Readonly<Record<string, string>> = {}): Promise<GrpcAnswer> {
    const stream = this.begin(path, headers);
    stream.end(bytes);
    return GrpcClient.answer(stream);
  }

  /** Resolves when the call has ended, in whatever way. */
  static answer(stream: ClientHttp2Stream): Promise<GrpcAnswer> {
    return new Promise((resolve) => {
      let headers: IncomingHttpHeaders = {};
      let trailers: IncomingHttpHeaders = {};
      const pieces: Buffer[] = [];
      stream.on('response', (received) => {
        headers = received;
      });
      stream.on('trailers', (received) => {
        trailers = received;
      });
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('end', () => {
        if (!stream.writableEnded) stream.end();
      });
      stream.on('close', () => {
        const all = { ...headers, ...trailers };
        const status = all['grpc-status'];
        resolve({
          code: status === undefined ? undefined : Number(status),
          message: decodeURIComponent(String(all['grpc-message'] ?? '')),
          headers: all,
          body: Buffer.concat(pieces),
          details: Buffer.from(String(all['grpc-status-details-bin'] ?? ''), 'base64'),
          resetCode: stream.rstCode ?? 0,
        });
      });
    });
  }

  /** Whether the server has ended the connection. */
  get isClosed(): boolean {
    return this.session.closed || this.session.destroyed;
  }

  /** Resolves when the connection has gone. */
  untilClosed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.session.destroyed) resolve();
      else this.session.once('close', () => resolve());
    });
  }

  /** Drops the connection. */
  destroy(): void {
    this.session.destroy();
  }
}
