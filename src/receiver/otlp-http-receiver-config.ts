import type { HttpListenerConfig } from '../component/http-listener.js';

/** The receiver's address and limits; time-outs and connections as in `HttpListenerConfig`. */
export interface OtlpHttpReceiverConfig extends Omit<HttpListenerConfig, 'option' | 'handlerContinues'> {
  /** Largest body, in bytes, on the wire and again after inflating; 413 beyond. Default 64 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * What all bodies in flight may take together, in bytes, from their first byte to their answer; 503 beyond. Each
   * counts for at least 16 KiB, which bounds their number, too. Default 256 MiB; a body may have no more than this.
   
   */
  readonly maxInFlightBytes?: number | undefined;
}

/** 64 MiB. */
export const DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024;

/** 256 MiB. */
export const DEFAULT_MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;
