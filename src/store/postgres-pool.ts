import { Socket } from 'node:net';
import { Pool } from 'pg';
import { POSTGRES_TYPES } from './postgres-types.js';

/** Connections that one part of the program (the main thread, the thread that exports) has open at most. */
export const MAX_CONNECTIONS = 10;
/** How long to wait for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that has not said a word for so long while something was asked of it is taken to be gone, in milliseconds. */
const SILENCE_MS = 120_000;

/** Opens connections to a PostgreSQL server as they are needed. */
export function postgresPool(url: string): Pool {
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    fallback_application_name: 'run-bridge',
    types: POSTGRES_TYPES,
    stream: silentSocket,
  });
  // Of a connection that breaks while nothing is asked of it, whoever asks next is told; unheard, the event would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

function silentSocket(): Socket {
  const socket = new Socket();
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('the server timed out')));
  return socket;
}
