import type { Transaction } from 'kysely';
import { camelCased, snakeCased } from '../core/snake-case.js';
import { changeState, nextIds } from './database.js';
import type { PermissionSet, StateDb, StateTables } from './state-tables.js';

/** Whose runs, jobs and tokens something is. */
export interface AccountRow {
  readonly id: number;
  readonly name: string;
}

/** The account that always exists. Not 1: clients take that for an unset default. */
export const FIRST_ACCOUNT_ID = 10_001;

/** Rows of accounts in an SQL database. */
export class AccountStore {
  constructor(private readonly db: StateDb) {}

  find(id: number): Promise<AccountRow | undefined> {
    return this.db.selectFrom('accounts').select(['id', 'name']).where('id', '=', id).executeTakeFirst();
  }

  /**
   * Adds an account. @param id its earlier id, if the state was rebuilt; default: a new one
   * @returns `undefined` if an account with that id exists.
   */
  add({ name, id }: { name: string; id: number | null }, nowUnixMs: number): Promise<AccountRow | undefined> {
    return changeState(this.db, async (transaction) => {
      const account = { id: id ?? (await nextId(transaction)), name };
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto('accounts')
        .values({ ...account, created_unix_ms: nowUnixMs })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 0n ? undefined : account;
    });
  }

  /** Returns whether there is one account, and at most one user whom tokens name. */
  async isAlone(): Promise<boolean> {
    const accounts = await this.db.selectFrom('accounts').select('id').limit(2).execute();
    if (accounts.length > 1) return false;
    const users = await selectTokens(this.db)
      .select('user_name')
      .distinct()
      .where('user_name', 'is not', null)
      .where('revoked_unix_ms', 'is', null)
      .limit(2)
      .execute();
    return users.length < 2;
  }

  /** Lists all of them, by id. */
  list(): Promise<readonly AccountRow[]> {
    return this.db.selectFrom('accounts').select(['id', 'name']).orderBy('id').execute();
  }
}

/** Above every id of an account, and of accounts before a rebuild: their runs have projects. */
async function nextId(transaction: Transaction<StateTables>): Promise<number> {
  const accounts = transaction.selectFrom('accounts').select('id');
  const owners = transaction.selectFrom('projects').select('account_id as id');
  const { last } = await transaction
    .selectFrom(accounts.union(owners).as('known'))
    .select(({ fn }) => fn.max<number>('id').as('last'))
    .executeTakeFirstOrThrow();
  return last + 1;
}

/** A new token, with everything but its value. */
export interface NewToken {
  readonly accountId: number;
  /** What it is for, in a person's words. */
  readonly name: string;
  /** Whose it is; `null` for a service token. */
  readonly userName: string | null;
  readonly permission: PermissionSet;
  /** SHA-256 of the token in lowercase hex; the token itself is not stored. */
  readonly hash: string;
  readonly createdUnixMs: number;
  /** From then on it is refused; `null` for never. */
  readonly expiresUnixMs: number | null;
}

/** A stored token. */
export interface TokenRow extends NewToken {
  readonly id: number;
  /** Since when it is refused; `null` while it is not. */
  readonly revokedUnixMs: number | null;
  /** When it was last let in, to `noteUse`'s precision; `null` for never. */
  readonly usedUnixMs: number | null;
}

/** What the token of a used link is like. */
export interface LinkExchange {
  /** SHA-256 of the new token in lowercase hex. */
  readonly hash: string;
  readonly expiresUnixMs: number;
  readonly nowUnixMs: number;
}

/** The outcome of revoking a token. */
export type RevokeResult =
  | { readonly kind: 'revoked' | 'alreadyRevoked'; readonly token: TokenRow }
  | { readonly kind: 'unknown' };

/** In front of the hash of a link's secret: it is no token's hash, so the secret is no token. */
const LINK = 'link:';
const ANY_LINK = `${LINK}%`;

/** Rows of tokens in an SQL database. */
export class TokenStore {
  constructor(private readonly db: StateDb) {}

  /** @throws StoreError */
  add(token: NewToken): Promise<TokenRow> {
    return this.db.transaction().execute((transaction) => insert(transaction, token));
  }

  /** Returns whether there has never been a token. */
  async isEmpty(): Promise<boolean> {
    return (await selectTokens(this.db).select('id').limit(1).executeTakeFirst()) === undefined;
  }

  /** Adds it where there has never been a token; of several programs at once, one does. `undefined` where there was one. */
  addFirst(token: NewToken): Promise<TokenRow | undefined> {
    return changeState(
      this.db,
      async (transaction) => {
        const first = await selectTokens(transaction).select('id').limit(1).executeTakeFirst();
        return first === undefined ? await insert(transaction, token) : undefined;
      },
      'token',
    );
  }

  /**
   * Finds a token that is good at that time. One that is expired or revoked is as if it had never been, in the same steps: no
   * row of it comes out of the database, which would take longer.
   */
  async findGood(hash: string, nowUnixMs: number): Promise<TokenRow | undefined> {
    const row = await this.db
      .selectFrom('tokens')
      .selectAll()
      .where('hash', '=', hash)
      .where('revoked_unix_ms', 'is', null)
      .where(({ or, eb }) => or([eb('expires_unix_ms', 'is', null), eb('expires_unix_ms', '>', nowUnixMs)]))
      .executeTakeFirst();
    return row && camelCased(row);
  }

  /** Lists all of them, by id; expired and revoked ones too. */
  async list(): Promise<readonly TokenRow[]> {
    const rows = await selectTokens(this.db).selectAll().orderBy('id').execute();
    return rows.map(camelCased);
  }

  async revoke(id: number, nowUnixMs: number): Promise<RevokeResult> {
    const revoked = await this.db
      .updateTable('tokens')
      .set({ revoked_unix_ms: nowUnixMs })
      .where('id', '=', id)
      .where('hash', 'not like', ANY_LINK)
      .where('revoked_unix_ms', 'is', null)
      .returningAll()
      .executeTakeFirst();
    if (revoked !== undefined) return { kind: 'revoked', token: camelCased(revoked) };
    const known = await selectTokens(this.db).selectAll().where('id', '=', id).executeTakeFirst();
    return known === undefined ? { kind: 'unknown' } : { kind: 'alreadyRevoked', token: camelCased(known) };
  }

  async noteUse(id: number, nowUnixMs: number): Promise<void> {
    await this.db.updateTable('tokens').set({ used_unix_ms: nowUnixMs }).where('id', '=', id).execute();
  }

  /**
   * Adds a link that becomes a token when it is used; until then no other method knows it. Those that have expired unused go.
   * @param link `hash` is that of the link's secret, and `expiresUnixMs` the link's
   */
  async addLink(link: NewToken): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      await transaction
        .deleteFrom('tokens')
        .where('hash', 'like', ANY_LINK)
        .where('expires_unix_ms', '<=', link.createdUnixMs)
        .execute();
      await insert(transaction, { ...link, hash: `${LINK}${link.hash}` });
    });
  }

  /**
   * Makes a link that has not expired the token that it stands for: it is used up. Of several programs at once, one does.
   * @param hash of the link's secret
   * @returns whether there was such a link
   */
  async exchangeLink(hash: string, { hash: newHash, expiresUnixMs, nowUnixMs }: LinkExchange): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('tokens')
      .set({ hash: newHash, expires_unix_ms: expiresUnixMs, created_unix_ms: nowUnixMs })
      .where('hash', '=', `${LINK}${hash}`)
      .where('expires_unix_ms', '>', nowUnixMs)
      .executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
  }
}

/** Returns all but links that nobody has used. */
function selectTokens(db: StateDb | Transaction<StateTables>) {
  return db.selectFrom('tokens').where('hash', 'not like', ANY_LINK);
}

async function insert(transaction: Transaction<StateTables>, token: NewToken): Promise<TokenRow> {
  const id = await nextIds(transaction, 'token', 1);
  const { accountId, name, userName, permission, hash, createdUnixMs, expiresUnixMs } = token;
  const given = { accountId, name, userName, permission, hash, createdUnixMs, expiresUnixMs };
  const row: TokenRow = { id, ...given, revokedUnixMs: null, usedUnixMs: null };
  await transaction.insertInto('tokens').values(snakeCased(row)).execute();
  return row;
}
