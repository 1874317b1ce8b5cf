/** Whose runs, jobs and tokens something is. */
export interface AccountRow {
  readonly id: number;
  readonly name: string;
}

/** The account that is there from the beginning. Not 1: clients take that for a default that nobody set. */
export const FIRST_ACCOUNT_ID = 10_001;

/** Rows of accounts. */
export interface AccountStore {
  find(id: number): Promise<AccountRow | undefined>;
  /** All of them, by id. */
  list(): Promise<readonly AccountRow[]>;
}
