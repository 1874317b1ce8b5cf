import { connect } from 'node:net';
import { type Environment, nonEmpty } from '../config/environment.js';

/** Tells a command, and an `exec` inside it, that its telemetry is taken care of: the URL it is to send to. */
export const EXEC_VARIABLE = 'RUN_BRIDGE_EXEC';
/** How long the other `exec` may take to take a connection, in milliseconds; it is on the same machine. */
const CONNECT_MS = 500;

/**
 * Whether another `exec` is at work around this one, and takes its command's telemetry: one that has died, or whose wiring
 * was undone in between, does not.
 */
export function isWrapped(environment: Environment): Promise<boolean> {
  const url = nonEmpty(environment[EXEC_VARIABLE]);
  if (url === undefined || url !== environment.OTEL_EXPORTER_OTLP_ENDPOINT || !URL.canParse(url)) {
    return Promise.resolve(false);
  }
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_MS, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
