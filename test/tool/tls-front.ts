import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { resolve } from 'node:path';
import { createServer, type Server } from 'node:tls';

/** A proxy that speaks TLS as `localhost` and 127.0.0.1 and passes everything on to a port without. */
export class TlsFront {
  /** The certificate, for clients to trust. */
  static readonly certificate = resolve('test/fixture/tls/localhost.crt');
  /** Its key. From the project's folder, since what is compiled for measuring stands elsewhere. */
  static readonly key = resolve('test/fixture/tls/localhost.key');

  /** @param url of what stands behind it, on this machine */
  static async open(url: string): Promise<TlsFront> {
    const secrets = { cert: readFileSync(TlsFront.certificate), key: readFileSync(TlsFront.key) };
    const { hostname, port } = new URL(url);
    const server = createServer(secrets, (socket) => {
      const behind = connect(Number(port), hostname);
      socket.pipe(behind).pipe(socket);
      for (const [one, other] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        one.on('error', () => other.destroy());
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TlsFront(server);
  }

  private constructor(private readonly server: Server) {}

  /** Host and port. */
  get host(): string {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the TLS front has no port');
    return `127.0.0.1:${address.port}`;
  }

  close(): void {
    this.server.close();
  }
}
