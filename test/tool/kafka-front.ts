import { connect, createServer, type Server, type Socket } from 'node:net';

/** Kinds of requests, as Kafka numbers them (https://kafka.apache.org/protocol#protocol_api_keys). */
export const HEARTBEAT = 12;
export const SYNC_GROUP = 14;

/** Stands before a listener of a broker, and breaks the connections on which requests of one kind come, or holds them back, while it is told to. */
export class KafkaFront {
  static async open(port: number, behindPort: number): Promise<KafkaFront> {
    const front = new KafkaFront(behindPort);
    await new Promise<void>((resolve) => front.server.listen(port, '127.0.0.1', resolve));
    return front;
  }

  /** The kind of requests that break their connection; `undefined` for none. */
  broken: number | undefined;
  /** Connections that were broken. */
  brokenCount = 0;
  private held: number | undefined;
  /** Lets each connection go on that a request is held back on. */
  private readonly resumes: (() => void)[] = [];
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor(behindPort: number) {
    this.server = createServer((socket) => {
      const behind = connect(behindPort, '127.0.0.1');
      behind.pipe(socket);
      let waiting: Buffer = Buffer.alloc(0);
      let isHeld = false;
      const pass = () => {
        // Each request: its length, its kind, the rest.
        while (waiting.length >= 6 && !isHeld) {
          const kind = waiting.readInt16BE(4);
          if (kind === this.broken) {
            this.brokenCount += 1;
            socket.destroy();
            return;
          }
          const length = 4 + waiting.readInt32BE(0);
          if (waiting.length < length) return;
          if (kind === this.held) {
            isHeld = true;
            this.resumes.push(() => {
              isHeld = false;
              pass();
            });
            return;
          }
          behind.write(waiting.subarray(0, length));
          waiting = waiting.subarray(length);
        }
      };
      socket.on('data', (chunk: Buffer) => {
        waiting = Buffer.concat([waiting, chunk]);
        pass();
      });
      for (const [one, other] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        this.sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  /** Holds requests of a kind back, and with them what follows on their connections, until `release`. */
  hold(kind: number): void {
    this.held = kind;
  }

  release(): void {
    this.held = undefined;
    for (const resume of this.resumes.splice(0)) resume();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}
