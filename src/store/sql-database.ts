/** What SQLite takes and gives; integers are safe ones: times in milliseconds, offsets in bytes. */
export type SqlValue = string | number | null;

/** One connection to an SQL database that answers at once, as an embedded one does. */
export interface SqlDatabase {
  /** The rows of a query. `Row` is what the statement selects: whoever writes the statement knows. */
  all<Row>(sql: string, parameters?: readonly SqlValue[]): readonly Row[];
  /** Returns how many rows were changed. */
  run(sql: string, parameters?: readonly SqlValue[]): number;
  /** All that `action` does is done, or nothing of it when it throws. Not to be nested. */
  transaction<T>(action: () => T): T;
}
