/** Whose runs, jobs and tokens something is. */
export interface AccountRow {
  readonly id: number;
  readonly name: string;
}

/** The account that always exists. Not 1: clients take that for an unset default. */
export const FIRST_ACCOUNT_ID = 10_001;

/** Rows of accounts. */
export interface AccountStore {
  find(id: number): Promise<AccountRow | undefined>;
  /**
   * Adds an account. @param id its earlier id, if the state was rebuilt; default: a new one
   * @returns `undefined` if an account with that id exists.
   */
  add(
    account: { readonly name: string; readonly id: number | null },
    nowUnixMs: number,
  ): Promise<AccountRow | undefined>;
  /** All of them, by id. */
  list(): Promise<readonly AccountRow[]>;
}
