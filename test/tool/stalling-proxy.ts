import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** A TCP proxy on this machine that can stop passing anything on, as a server that hangs does: connections are taken, and stay. */
export class StallingProxy {
  /**
   * @param port of what stands behind it, on this machine
   * @param onRequest is told of every chunk that a client sends, before it is passed on
   */
  static async open(port: number, onRequest: (chunk: Buffer) => void = () => {}): Promise<StallingProxy> {
    const proxy = new StallingProxy(port, onRequest);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  private isStalled = false;
  private held: (() => void)[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  private constructor(port: number, onRequest: (chunk: Buffer) => void) {
    this.server = createServer((socket) => {
      const behind = connect(port, '127.0.0.1');
      socket.pipe(this.gate(onRequest)).pipe(behind);
      behind.pipe(this.gate(() => {})).pipe(socket);
      for (const [one, other] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        this.sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => this.sockets.delete(one));
      }
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Nothing passes from now on. */
  stall(): void {
    this.isStalled = true;
  }

  /** What came meanwhile passes, and everything else. */
  resume(): void {
    this.isStalled = false;
    for (const pass of this.held.splice(0)) pass();
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private gate(onChunk: (chunk: Buffer) => void): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        onChunk(chunk);
        const pass = () => done(null, chunk);
        if (this.isStalled) this.held.push(pass);
        else pass();
      },
    });
  }
}
