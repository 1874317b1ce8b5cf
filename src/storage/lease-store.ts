/** Who has a thing that one program at a time may have. */
export interface Lease {
  readonly holder: string;
  /** By the clock of whoever took it last. */
  readonly expiresUnixMs: number;
  /** One higher each time that another holder takes it; never goes back. */
  readonly generation: number;
}

/** Leases by their names, for programs that share a database. Their clocks agree but for a part of a lease's length. */
export interface LeaseStore {
  /**
   * Takes a lease that nobody has or that has expired, or renews one's own.
   * @returns the lease as it is now: taken where its holder is the one that asked.
   */
  take(name: string, holder: string, nowUnixMs: number, lengthMs: number): Promise<Lease>;
  /** Lets go of a lease; nothing where somebody else has it. */
  release(name: string, holder: string): Promise<void>;
}
