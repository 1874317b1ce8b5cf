import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver that takes every OTLP request and keeps nothing: what an engine's export costs the engine itself. */
export interface AnsweringReceiver {
  readonly url: string;
  close(): void;
}

export async function answeringReceiver(): Promise<AnsweringReceiver> {
  const server = createServer((request, response) => {
    request.resume();
    // An empty message is an answer to both signals: everything was taken.
    request.once('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
