import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { isIP, type Server as NetServer, type Socket, Server as TcpServer } from 'node:net';
import { errorCode } from './errors.js';
import type { Logger } from './logger.js';

/** The name by which containers reach their host. */
const DOCKER_HOST = 'host.docker.internal';
/** Each refused name is logged once, up to this many names. */
const MAX_LOGGED = 20;

/**
 * Checks the `Host` header of requests to a loopback address. A page of any web site may have its name resolve to 127.0.0.1 and then read responses as its own origin (DNS rebinding), but its
 * requests still have that name in `Host`. Other addresses are not checked: the names by which they are reached cannot be known here.
 */
export class HostCheck {
  private readonly exact: ReadonlySet<string>;
  private readonly suffixes: readonly string[];
  private readonly logged = new Set<string>();

  /** @param names allowed beside `localhost`, addresses and `host.docker.internal`; a leading dot matches all subdomains */
  constructor(
    names: readonly string[] = [],
    private readonly logger?: Logger,
  ) {
    const known = names.map((name) => name.toLowerCase());
    this.exact = new Set(['localhost', DOCKER_HOST, ...known.filter((name) => !name.startsWith('.'))]);
    this.suffixes = known.filter((name) => name.startsWith('.'));
  }

  /**
   * Checks whether a request may be answered.
   * @param host the `Host` or `:authority` header; HTTP/1.0 may omit it
   * @param localAddress the socket's local address
   * @returns `undefined` if it may; else a sentence for the sender
   */
  findProblem(host: string | undefined, localAddress: string | undefined): string | undefined {
    if (host === undefined || localAddress === undefined || !isLoopback(localAddress.replace(/^::ffff:/i, ''))) {
      return undefined;
    }
    const name = nameIn(host);
    if (this.isKnown(name)) return undefined;
    const shown = /^[\w.-]{1,253}$/.test(name) ? name : 'this Host';
    if (!this.logged.has(shown) && this.logged.size < MAX_LOGGED) {
      this.logged.add(shown);
      this.logger?.warn({ host: shown }, 'a request was refused for its Host; allowed-hosts adds names');
    }
    return `${shown} is no name of this address: say localhost or the address itself, or add the name to allowed-hosts.`;
  }

  private isKnown(name: string): boolean {
    return this.exact.has(name) || isIP(name) !== 0 || this.suffixes.some((suffix) => name.endsWith(suffix));
  }
}

/** Returns the names of the machine: its host name, short and with its domains, and its aliases in the hosts file. */
export function machineNames(hostname: string, hostsFile: string, resolverFile: string): readonly string[] {
  const fullName = hostname.toLowerCase();
  const [short = ''] = fullName.split('.');
  const lines = hostsFile.split('\n').map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/).slice(1));
  const aliases = lines.filter((names) => names.includes(fullName) || names.includes(short)).flat();
  const domains = resolverFile
    .split('\n')
    .flatMap((line) => /^(?:search|domain)\s+(.*)/.exec(line)?.[1]?.split(/\s+/) ?? []);
  const qualified = domains.filter((domain) => domain !== '' && domain !== '.').map((domain) => `${short}.${domain}`);
  return [...new Set([fullName, short, ...aliases, ...qualified])].filter((name) => name !== '');
}

/** Returns the host name without a port, the brackets of IPv6 and a trailing dot. */
function nameIn(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d*$/, '').replace(/\.$/, '')).toLowerCase();
}

/** Whether the host of an address or URL can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^\[?::1\]?$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/**
 * Whether people reach the pages from this machine only.
 * @param host on which the pages listen
 * @param publicUrl their public address, which a container has where its port is published; `null` if not configured
 */
export function arePagesLocal(host: string, publicUrl: string | null): boolean {
  return isLoopback(host) || (publicUrl !== null && isLoopback(new URL(publicUrl).hostname));
}

/** Where to listen, and the time limits for senders. */
export interface HttpListenerConfig extends PortChoice {
  /** The time until the header of a request is complete; then 408. Default 15 s. */
  readonly headersTimeoutMs?: number | undefined;
  /** The time until a whole request is complete; then 408. Default 60 s. */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * How long a connection may be idle between two requests. Default 120 s: longer than the 90 s after which common clients drop an idle connection, so that a sender that does not retry never uses
   * one that is just being closed.
   */
  readonly keepAliveTimeoutMs?: number | undefined;
  /** The most open connections; further ones are closed at once. Default 1,024. */
  readonly maxConnections?: number | undefined;
  /** The host names that are answered at loopback addresses; others get 421. Default: all. */
  readonly hosts?: HostCheck | undefined;
  /** Whether the handler itself sends `100 Continue` before it reads a body. Default false: it is sent for every request. */
  readonly handlerContinues?: boolean | undefined;
}

/**
 * How long idle connections stay open after the shutdown has begun, in milliseconds: a sender may be sending its next request just then, and would get a reset. Such a request is answered with
 * `connection: close`.
 */
const LAST_REQUEST_MS = 200;

/** Requests without a time limit; their handlers enforce a minimum rate themselves. */
const unhurried = new WeakSet<IncomingMessage>();

/**
 * Exempts a request from `requestTimeoutMs`; the reader of its body has to abort senders that have stopped.
 * @returns a function that ends the exemption
 */
export function letTakeItsTime(request: IncomingMessage): () => void {
  unhurried.add(request);
  return () => unhurried.delete(request);
}

/** An HTTP server on a port. Reports clearly why it cannot open, and lets running requests finish when it closes. */
export class HttpListener {
  private readonly server: Server;
  /** Open connections, each with its unanswered requests. */
  private readonly connections = new Map<Socket, Set<ServerResponse>>();
  /** The last request of each connection, the only one that may still be arriving, and the time at which its header was complete. */
  private readonly latest = new Map<Socket, { readonly response: ServerResponse; readonly startedMs: number }>();
  private boundAddress: ListenAddress | undefined;
  private closing = false;
  private readonly requestTimeoutMs: number;
  private readonly checkMs: number;
  private slowTimer: NodeJS.Timeout | undefined;
  private readonly dropped: DroppedConnections;

  constructor(
    private readonly config: HttpListenerConfig,
    handler: RequestListener,
    private readonly logger: Logger,
  ) {
    this.requestTimeoutMs = config.requestTimeoutMs ?? 60_000;
    const headersTimeout = Math.min(config.headersTimeoutMs ?? 15_000, this.requestTimeoutMs);
    this.checkMs = Math.min(5_000, Math.max(10, Math.ceil(headersTimeout / 4)));
    this.server = createServer({
      // Node's own timeout has no exemptions, so it is used for headers only.
      requestTimeout: 0,
      headersTimeout,
      keepAliveTimeout: config.keepAliveTimeoutMs ?? 120_000,
      // The interval at which Node looks for slow senders.
      connectionsCheckingInterval: this.checkMs,
    });
    this.server.maxConnections = config.maxConnections ?? 1_024;
    this.server.on('connection', (socket) => this.track(socket));
    this.server.on('request', (request, response) => {
      this.trackRequest(request.socket, response);
      const problem = config.hosts?.findProblem(request.headers.host, request.socket.localAddress);
      if (problem === undefined) handler(request, response);
      else misdirect(response, problem);
    });
    if (config.handlerContinues === true) {
      this.server.on('checkContinue', (request, response) => this.server.emit('request', request, response));
    }
    this.dropped = new DroppedConnections(this.server, logger);
  }

  /** @throws Error before `start()` has resolved. */
  get address(): ListenAddress {
    if (this.boundAddress === undefined) throw new Error('not listening yet');
    return this.boundAddress;
  }

  /** Whether new connections are accepted. */
  get isOpen(): boolean {
    return this.boundAddress !== undefined && !this.closing;
  }

  /** The number of open connections. */
  get connectionCount(): number {
    return this.connections.size;
  }

  /** The number of connections closed at once because `maxConnections` were open. */
  get droppedConnectionCount(): number {
    return this.dropped.count;
  }

  get connectionCounts(): ConnectionCounts {
    return { openCount: this.connectionCount, droppedCount: this.droppedConnectionCount };
  }

  /** Opens the port. @throws ListenError */
  async start(): Promise<void> {
    this.boundAddress = await openPort(this.server, this.config);
    this.slowTimer = setInterval(() => this.cutOffSlow(), this.checkMs).unref();
    this.server.on('error', (error) => this.logger.error({ reason: error.message }, 'failed to accept a connection'));
  }

  /** Accepts no more connections, closes idle ones soon and lets running requests finish; closes the rest when `deadline` aborts. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    if (this.closing || this.boundAddress === undefined) return;
    this.closing = true;
    const closed = this.stopAccepting();
    const cutOff = () => this.server.closeAllConnections();
    deadline.addEventListener('abort', cutOff);
    if (deadline.aborted) cutOff();
    const timer = setTimeout(() => this.closeIdle(), LAST_REQUEST_MS);
    for (const responses of this.connections.values()) for (const response of responses) closeAfter(response);
    await closed;
    clearInterval(this.slowTimer);
    clearTimeout(timer);
    deadline.removeEventListener('abort', cutOff);
  }

  /**
   * Resolves when the last connection has closed. HTTP's own `close()` would immediately drop the timeouts for slow senders, leave connections open that never sent a request, and cut off a response
   * that is written but not yet sent.
   */
  private async stopAccepting(): Promise<void> {
    await new Promise<void>((resolve) => TcpServer.prototype.close.call(this.server, () => resolve()));
    // Nothing is left to close; this lets Node stop looking for slow senders.
    this.server.close();
  }

  private closeIdle(): void {
    for (const [socket, responses] of this.connections) if (responses.size === 0) socket.destroy();
  }

  private track(socket: Socket): void {
    this.connections.set(socket, new Set());
    socket.once('close', () => {
      this.connections.delete(socket);
      this.latest.delete(socket);
    });
  }

  /** Closes connections whose request is not complete in time, whether answered or not; unanswered ones get 408. */
  private cutOffSlow(): void {
    const sinceMs = performance.now() - this.requestTimeoutMs;
    for (const [socket, { response, startedMs }] of this.latest) {
      if (response.req.complete || startedMs > sinceMs || unhurried.has(response.req)) continue;
      if (!response.headersSent) socket.write('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n');
      socket.destroy();
    }
  }

  private trackRequest(socket: Socket, response: ServerResponse): void {
    this.latest.set(socket, { response, startedMs: performance.now() });
    const responses = this.connections.get(socket);
    responses?.add(response);
    if (this.closing) closeAfter(response);
    response.once('close', () => {
      responses?.delete(response);
      if (this.closing && responses?.size === 0) socket.destroySoon();
    });
  }
}

/** Answers 421 and closes the connection without reading the body. */
function misdirect(response: ServerResponse, problem: string): void {
  const text = `${problem}\n`;
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': Buffer.byteLength(text) };
  response.writeHead(421, { ...headers, Connection: 'close' }).end(text);
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

/** The address to listen on. */
export interface PortChoice {
  readonly host: string;
  /** 0 lets the system pick a free one. */
  readonly port: number;
  /** The option with which a user chooses the address, for error messages: for example `--http HOST:PORT`. */
  readonly option: string;
}

/** The address on which a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** For example `http://127.0.0.1:4318`. */
  readonly url: string;
}

/** Makes a server listen. @throws ListenError */
export async function openPort(server: NetServer, { host, port, option }: PortChoice): Promise<ListenAddress> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (error) {
    throw ListenError.from(error, hostAndPort(host, port), option);
  }
  const bound = server.address();
  const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
  return { host, port: boundPort, url: `http://${hostAndPort(host, boundPort)}` };
}

function hostAndPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Why a port could not be opened. */
export type ListenErrorCode = 'in_use' | 'not_permitted' | 'bad_address' | 'failed';

/** A port could not be opened; the message is one line that says how to fix it, printed before exit code 2. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  constructor(
    readonly code: ListenErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /**
   * @param where host and port as requested
   * @param option the option that chooses another address, for example `--http HOST:PORT`
   */
  static from(cause: unknown, where: string, option: string): ListenError {
    switch (errorCode(cause)) {
      case 'EADDRINUSE':
        return new ListenError(
          'in_use',
          `${where} is in use by another program; stop it or choose another port with ${option}`,
          { cause },
        );
      case 'EACCES':
      case 'EPERM':
        return new ListenError(
          'not_permitted',
          `${where} may not be opened by this user; choose a port above 1023 with ${option}`,
          { cause },
        );
      case 'EADDRNOTAVAIL':
      case 'EAFNOSUPPORT':
      case 'EINVAL':
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return new ListenError(
          'bad_address',
          `${where} is not an address of this machine; choose one, for example 127.0.0.1, with ${option}`,
          { cause },
        );
      case 'ERR_SOCKET_BAD_PORT':
        return new ListenError(
          'bad_address',
          `${where}: a port is a number from 0 to 65535; choose it with ${option}`,
          {
            cause,
          },
        );
      default:
        return new ListenError(
          'failed',
          `${where} could not be opened (${String(cause)}); choose another address with ${option}`,
          { cause },
        );
    }
  }
}

/** Numbers of a listener's connections. */
export interface ConnectionCounts {
  readonly openCount: number;
  /** Connections that were closed at once since the start because too many were open. */
  readonly droppedCount: number;
}

/** Counts the connections that a server refuses because `maxConnections` are open, and logs them. */
export class DroppedConnections {
  private dropped = 0;

  constructor(server: NetServer, logger: Logger) {
    server.on('drop', () => {
      this.dropped += 1;
      // Logged at 1, 10, 100 …, so that a flood of connections does not flood the log.
      if (!/^10*$/.test(String(this.dropped))) return;
      const fields = { droppedConnectionCount: this.dropped, maxConnections: server.maxConnections };
      logger.warn(fields, 'refused a connection: too many are open');
    });
  }

  get count(): number {
    return this.dropped;
  }
}

/** An address that listens everywhere is reached from this machine by its loopback address. */
export function reachableUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
