import { connect, createServer, type Server } from 'node:net';
import { Transform } from 'node:stream';

/** A proxy that holds each HTTP request of one method up for a while and passes everything else on at once. */
export class SlowProxy {
  /**
   * @param url of what stands behind it, on this machine
   * @param method of the requests that take longer, for example `PUT`
   */
  static async open(url: string, method: string, delayMs: number): Promise<SlowProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new SlowProxy((held) =>
      createServer((socket) => {
        const behind = connect(Number(port), hostname);
        const hold = new Transform({
          transform(chunk: Buffer, _encoding, done) {
            const isSlow = chunk.subarray(0, method.length + 1).toString('latin1') === `${method} `;
            if (isSlow) held();
            setTimeout(() => done(null, chunk), isSlow ? delayMs : 0);
          },
        });
        socket.pipe(hold).pipe(behind).pipe(socket);
        for (const [one, other] of [
          [socket, behind],
          [behind, socket],
        ] as const) {
          one.on('error', () => other.destroy());
          one.on('close', () => other.destroy());
        }
      }),
    );
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** Requests that were held up. */
  heldCount = 0;
  private readonly server: Server;

  private constructor(create: (held: () => void) => Server) {
    this.server = create(() => {
      this.heldCount += 1;
    });
  }

  get url(): string {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    return `http://127.0.0.1:${address.port}`;
  }

  close(): void {
    this.server.close();
  }
}
