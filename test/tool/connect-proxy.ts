import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

/** A real HTTP proxy on this machine that opens connections with CONNECT, for who knows its password. */
export class ConnectProxy {
  /** @param credentials user and password, with a colon between them */
  static async open(credentials: string): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(credentials);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  /** Addresses and ports that it was asked for. */
  readonly asked: string[] = [];
  /** An address that it connects to for nobody. */
  refused: string | undefined;
  /** It takes requests and answers none. */
  isSilent = false;
  private readonly sockets = new Set<Duplex>();
  private readonly server: Server;

  private constructor(private readonly credentials: string) {
    const expected = `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.server = createServer((_request, response) => response.writeHead(405).end());
    this.server.on('connect', (request, socket: Duplex) => {
      const authority = request.url ?? '';
      this.sockets.add(socket);
      socket.on('error', () => {});
      this.asked.push(authority);
      if (this.isSilent) return;
      const { hostname, port } = new URL(`http://${authority}`);
      if (request.headers['proxy-authorization'] !== expected) {
        socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
        return;
      }
      if (hostname === this.refused) {
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        return;
      }
      const behind = connect(Number(port || 80), hostname, () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        socket.pipe(behind).pipe(socket);
      });
      this.sockets.add(behind);
      behind.on('error', () => socket.destroy());
    });
  }

  get url(): string {
    return `http://${this.credentials}@127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (!this.server.listening) return;
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
