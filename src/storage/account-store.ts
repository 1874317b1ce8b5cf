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
  /**
   * Adds one. @param id the number that it has had, where the state was made anew; default: one that nothing ever had
   * @returns `undefined` where there is one with that number.
   */
  add(
    account: { readonly name: string; readonly id: number | null },
    nowUnixMs: number,
  ): Promise<AccountRow | undefined>;
  /** All of them, by id. */
  list(): Promise<readonly AccountRow[]>;
}
