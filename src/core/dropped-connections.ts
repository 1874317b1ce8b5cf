import type { Server } from 'node:net';
import type { Logger } from './logger.js';

/** Counts the connections that a server refuses because `maxConnections` are open, and logs them. */
export class DroppedConnections {
  private dropped = 0;

  constructor(server: Server, logger: Logger) {
    server.on('drop', () => {
      this.dropped += 1;
      // At 1, 10, 100 …: a flood of connections must not flood the log.
      if (!/^10*$/.test(String(this.dropped))) return;
      const fields = { droppedConnectionCount: this.dropped, maxConnections: server.maxConnections };
      logger.warn(fields, 'refused a connection: too many are open');
    });
  }

  get count(): number {
    return this.dropped;
  }
}
