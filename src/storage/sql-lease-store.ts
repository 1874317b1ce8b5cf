import type { Lease, LeaseStore } from './lease-store.js';
import type { StateDb } from './state-tables.js';

/** Rows of leases in an SQL database. */
export class SqlLeaseStore implements LeaseStore {
  constructor(private readonly db: StateDb) {}

  /** One statement, so that of several programs one gets it. */
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

  async release(name: string, holder: string): Promise<void> {
    await this.db
      .updateTable('leases')
      .set({ expires_unix_ms: 0 })
      .where('name', '=', name)
      .where('holder', '=', holder)
      .execute();
  }
}
