import type { Server } from 'node:net';
import { ListenError } from './listen-error.js';

/** Where to listen. */
export interface PortChoice {
  readonly host: string;
  /** 0 lets the system pick a free one. */
  readonly port: number;
  /** How a user chooses the address, for error messages: for example `--http HOST:PORT`. */
  readonly option: string;
}

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** For example `http://127.0.0.1:4318`. */
  readonly url: string;
}

/** Lets a server listen. @throws ListenError */
export async function openPort(server: Server, { host, port, option }: PortChoice): Promise<ListenAddress> {
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
