/** The processes that share a database, each with a lease by the database's clock. */
export interface MemberStore {
  /** Adds a process, alive for so long. */
  join(processId: string, leaseMs: number): Promise<void>;
  /** Renews a lease, also an expired one that nobody has taken over. @returns false if the process counts as dead, permanently */
  renew(processId: string, leaseMs: number): Promise<boolean>;
  /** The process counts as dead from now on: others may take what it had. */
  leave(processId: string): Promise<void>;
  /** Counts those as dead whose lease has run out. @returns these, and those that were dead before and are not forgotten */
  bury(): Promise<readonly string[]>;
  /** Those that are not counted as dead. */
  listAlive(): Promise<readonly string[]>;
  /** Deletes dead processes that are no longer referenced. */
  forget(processIds: readonly string[]): Promise<void>;
}
