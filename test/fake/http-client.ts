import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The client's port: equal for two answers that came over one connection. */
  readonly localPort: number | undefined;
}

/** What to send. */
export interface Sending {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Several pieces are sent chunked, without a Content-Length. */
  readonly body?: Uint8Array | readonly Uint8Array[];
  readonly agent?: Agent;
}

/** Sends one request; resolves as soon as the answer is there, even when the body was not wanted. */
export function send(port: number, sending: Sending): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { path, headers = {}, agent } = sending;
    const options = { host: '127.0.0.1', port, path, method: sending.method ?? 'POST', agent: agent ?? false };
    const pieces = sending.body === undefined || sending.body instanceof Uint8Array ? undefined : sending.body;
    const whole = sending.body instanceof Uint8Array ? sending.body : new Uint8Array();
    const length = pieces === undefined ? { 'Content-Length': String(whole.byteLength) } : {};
    const outgoing = request({ ...options, headers: { ...length, ...headers } });
    let answered = false;
    outgoing.on('response', (response) => {
      answered = true;
      const localPort = response.socket.localPort;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        // Server-sent events have no end: their beginning is the answer.
        if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy().emit('end');
      });
      response.on('end', () => {
        const body = Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, localPort });
        if (!outgoing.writableFinished) outgoing.destroy();
      });
      response.on('error', reject);
    });
    outgoing.on('error', (error) => {
      if (!answered) reject(error);
    });
    if (pieces === undefined) outgoing.end(whole);
    else {
      for (const piece of pieces) outgoing.write(piece);
      outgoing.end();
    }
  });
}

/** A connection on which a test writes what it likes. */
export class RawConnection {
  private text = '';
  private readonly socket: Socket;
  private readonly closed: Promise<void>;
  private waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    // A reset is one of the ways in which a server ends a connection.
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
      for (const check of this.waiting) check();
    });
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new RawConnection(socket)));
      socket.once('error', reject);
    });
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Half-closes: nothing more will be sent. */
  end(): void {
    this.socket.end();
  }

  /** Drops the connection. */
  destroy(): void {
    this.socket.destroy();
  }

  /** Resolves once what was received matches. */
  received(pattern: RegExp): Promise<string> {
    return new Promise((resolve) => {
      const check = () => {
        if (!pattern.test(this.text)) return;
        this.waiting = this.waiting.filter((one) => one !== check);
        resolve(this.text);
      };
      this.waiting.push(check);
      check();
    });
  }

  /** Resolves with all that was received, once the server has closed. */
  async untilClosed(): Promise<string> {
    await this.closed;
    return this.text;
  }
}
