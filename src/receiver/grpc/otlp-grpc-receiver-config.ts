import type { HostCheck } from '../../core/host-check.js';

/** The receiver's address and limits. */
export interface OtlpGrpcReceiverConfig {
  readonly host: string;
  /** 0 lets the system pick a free one. */
  readonly port: number;
  /** Which names it answers to at loopback addresses; calls to others are answered 421 and PERMISSION_DENIED. Default: all. */
  readonly hosts?: HostCheck | undefined;
  /** Whether the program goes on without this receiver when another one has the port. Default false. */
  readonly isOptional?: boolean | undefined;
  /** Further connections are closed at once. Default 1,024. */
  readonly maxConnections?: number | undefined;
  /** Maximum concurrent calls per connection; clients queue further ones. Default 100. */
  readonly maxCallsPerConnection?: number | undefined;
  /** Timeout for a connection's first 24 bytes, which identify HTTP/2. Default 15 s. */
  readonly prefaceTimeoutMs?: number | undefined;
  /** Until a call's message has arrived whole; then DEADLINE_EXCEEDED. Default 60 s. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long a connection may be without a call; then it is closed with a GOAWAY, and after as long again cut off. Default 120 s. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Interval of pings; a connection has 20 s to answer. Default 10 s: Node does not notice
   * when the sender of a connection with a protocol error has gone, so an unanswered ping closes it.
   */
  readonly keepaliveMs?: number | undefined;
}
