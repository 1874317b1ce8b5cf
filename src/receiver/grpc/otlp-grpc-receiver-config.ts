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
  /** Calls under way on one connection; clients keep to it, and wait with more. Default 100. */
  readonly maxCallsPerConnection?: number | undefined;
  /** Until a connection's first 24 bytes have arrived, which say that it is HTTP/2. Default 15 s. */
  readonly prefaceTimeoutMs?: number | undefined;
  /** Until a call's message has arrived whole; then DEADLINE_EXCEEDED. Default 60 s. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long a connection may be without a call; then it is closed with a GOAWAY, and after as long again cut off. Default 120 s. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * How often a connection is asked whether it is still there; it has 20 s to answer. Default 10 s: Node does not notice
   * that the sender of a connection that broke the protocol has gone, so that an unanswered ping is what ends it.
   */
  readonly keepaliveMs?: number | undefined;
}
