import { connect, createServer, type Server, type Socket } from 'node:net';

/** A line to a server on this machine that can be cut, and mended again. */
export class CutLine {
  /** @param port of the server. */
  static async open(port: number): Promise<CutLine> {
    const line = new CutLine(port);
    await line.listen(0);
    return line;
  }

  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();
  /** Where the line begins. */
  port = 0;

  private constructor(private readonly target: number) {}

  /** Ends every connection, and takes no more. */
  async cut(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    const closed = new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async mend(): Promise<void> {
    await this.listen(this.port);
  }

  private listen(port: number): Promise<void> {
    const server = createServer((near) => {
      const far = connect(this.target, '127.0.0.1');
      for (const socket of [near, far]) {
        this.sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    this.server = server;
    return new Promise((resolve) =>
      server.listen(port, '127.0.0.1', () => {
        const address = server.address();
        if (typeof address === 'object' && address !== null) this.port = address.port;
        resolve();
      }),
    );
  }
}
