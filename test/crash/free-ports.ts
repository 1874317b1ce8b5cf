import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../tool/until.js';

/** A file for each port that a test process has claimed, with its process id. */
const CLAIMS = join(tmpdir(), 'run-bridge-ports');
/** Whoever listens on it is the one that claims ports just now; the system takes it from a process that ends. */
const TURN_PORT = 15_999;

/**
 * Ports that nobody listens on, below those that the system gives to outgoing connections: a server that was killed has
 * to find its own free again. They stay this process's until it ends, so that test files that run at the same time
 * get different ones.
 */
export async function freePorts(count: number, firstPort: number): Promise<readonly number[]> {
  const turn = await until('the turn to claim ports', () => listen(TURN_PORT));
  const ports: number[] = [];
  for (let port = firstPort; ports.length < count && port < 32_000; port += 1) {
    if (!isClaimed(port) && (await isFree(port))) {
      writeFileSync(join(CLAIMS, String(port)), String(process.pid));
      ports.push(port);
    }
  }
  turn.close();
  if (ports.length < count) throw new Error(`there are no ${count} free ports from ${firstPort} on`);
  return ports;
}

function isClaimed(port: number): boolean {
  mkdirSync(CLAIMS, { recursive: true });
  try {
    process.kill(Number(readFileSync(join(CLAIMS, String(port)), 'utf8')), 0);
    return true;
  } catch {
    // There is no such file, or no such process any more.
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen(port);
  server?.close();
  return server !== undefined;
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  return await once(server, 'listening').then(
    () => server,
    () => undefined,
  );
}
