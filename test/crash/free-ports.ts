import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports that nobody listens on, below those that the system gives to outgoing connections: a server that was killed has
 * to find its own free again.
 */
export async function freePorts(count: number, firstPort: number): Promise<readonly number[]> {
  const ports: number[] = [];
  for (let port = firstPort; ports.length < count && port < 32_000; port += 1) {
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ]);
    server.close();
    if (isFree) ports.push(port);
  }
  return ports;
}
