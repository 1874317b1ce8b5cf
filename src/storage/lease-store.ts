import type { StateDb } from './state-tables.js';

/** The holder of a lease. */
export interface Lease {
  readonly holder: string;
  /** By the clock of the process that took it last. */
  readonly expiresUnixMs: number;
  /** One higher each time that another holder takes it; never goes back. */
  readonly generation: number;
}

/** How the lease of a process is called, before the id of its data folder: its holder is alive. */
export const PROCESS_LEASE = 'process ';

/** A holder without a renewal for this long loses its lease, in milliseconds. */
export const LEASE_MS = 15_000;
/** How often a holder renews, in milliseconds: two attempts in a row may fail. */
export const LEASE_RENEW_MS = 5_000;

/** Rows of leases in an SQL database. */
export class LeaseStore {
  constructor(private readonly db: StateDb) {}

  /**
   * Takes a free or expired lease, or renews the caller's.
   * @returns the current lease: its holder is the caller if it was taken.
   * One statement, so that of several programs one gets it.
   */
  async take(name: string, holder: string, nowUnixMs: number, lengthMs: number): Promise<Lease> {
    await this.db
      .insertInto('leases')
      .values({ name, holder, expires_unix_ms: nowUnixMs + lengthMs, generation: 1 })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet(({ ref, eb }) => ({
            holder: ref('excluded.holder'),
            expires_unix_ms: ref('excluded.expires_unix_ms'),
            generation: eb
              .case()
              .when('leases.holder', '=', ref('excluded.holder'))
              .then(ref('leases.generation'))
              .else(eb('leases.generation', '+', 1))
              .end(),
          }))
          .where(({ or, eb, ref }) =>
            or([eb('leases.holder', '=', ref('excluded.holder')), eb('leases.expires_unix_ms', '<=', nowUnixMs)]),
          ),
      )
      .execute();
    const row = await this.db.selectFrom('leases').selectAll().where('name', '=', name).executeTakeFirstOrThrow();
    return { holder: row.holder, expiresUnixMs: row.expires_unix_ms, generation: row.generation };
  }

  /** Releases a lease, if the caller holds it. */
  async release(name: string, holder: string): Promise<void> {
    await this.db
      .updateTable('leases')
      .set({ expires_unix_ms: 0 })
      .where('name', '=', name)
      .where('holder', '=', holder)
      .execute();
  }
}
