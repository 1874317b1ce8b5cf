/** The holder of a lease. */
export interface Lease {
  readonly holder: string;
  /** By the clock of the process that took it last. */
  readonly expiresUnixMs: number;
  /** One higher each time that another holder takes it; never goes back. */
  readonly generation: number;
}

/** Leases by their names, for programs that share a database. Their clocks agree but for a part of a lease's length. */
export interface LeaseStore {
  /**
   * Takes a free or expired lease, or renews its own.
   * @returns the current lease: its holder is the caller if it was taken.
   */
  take(name: string, holder: string, nowUnixMs: number, lengthMs: number): Promise<Lease>;
  /** Releases a lease, if the caller holds it. */
  release(name: string, holder: string): Promise<void>;
}

/** A holder without a renewal for this long loses its lease, in milliseconds. */
export const LEASE_MS = 15_000;
/** How often a holder renews, in milliseconds: two attempts in a row may fail. */
export const LEASE_RENEW_MS = 5_000;
