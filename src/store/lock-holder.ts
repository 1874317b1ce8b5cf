/** Who holds a data folder. */
export interface LockHolder {
  /** Process id. */
  readonly pid: number;
  /** When it took the folder, in ISO 8601. */
  readonly since: string;
  /** Where it listens; `null` until it does. */
  readonly address: string | null;
}
