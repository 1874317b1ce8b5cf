import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../component/clock.js';

/** What the last answer of a connection has to leave, in milliseconds. */
const LAST_ANSWER_MS = 500;

/**
 * Cuts a connection off that has had no call for some time. grpc-js ends one that is idle with a GOAWAY, which Node puts
 * off for as long as a header that was begun, or a call of a service that is not there, has no end.
 */
export class IdleWatch {
  private callCount = 0;
  private timer: Timer | undefined;

  /** @param idleMs how long the connection may be without a call. */
  constructor(
    private readonly connection: Duplex,
    private idleMs: number,
    private readonly clock: Clock,
  ) {
    connection.once('close', () => this.timer?.cancel());
    this.wait();
  }

  /** A call begins. */
  begin(): void {
    this.callCount += 1;
    this.timer?.cancel();
  }

  /** A call has ended. */
  end(): void {
    this.callCount -= 1;
    if (this.callCount === 0) this.wait();
  }

  /** No more calls come: cuts off soon what its last call does not end. */
  drain(): void {
    this.idleMs = LAST_ANSWER_MS;
    this.timer?.cancel();
    if (this.callCount === 0) this.wait();
  }

  private wait(): void {
    this.timer = this.clock.after(this.idleMs, () => this.connection.destroy());
  }
}
