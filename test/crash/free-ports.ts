import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports that nobody listens on, below those that the system gives to outgoing connections: a server that was killed has
 * to find its own free again, also where two trials run at the same time.
 */
export async function freePorts(count: number, firstPort: number): Promise<readonly number[]> {
  const ports: number[] = [];
  for (let port = firstPort + (process.pid % 1_000) * 4; ports.length < count && port < 32_000; port += 1) {
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) ports.push(port);
  }
  return ports;
}
