import { sql } from 'kysely';
import type { DatabaseTraits } from '../database-traits.js';
import type { StateDb } from '../state-tables.js';
import type { MemberStore } from './member-store.js';

/** Rows of processes in an SQL database. */
export class SqlMemberStore implements MemberStore {
  constructor(
    private readonly db: StateDb,
    private readonly database: Pick<DatabaseTraits, 'nowUnixMs'>,
  ) {}

  async join(processId: string, leaseMs: number): Promise<void> {
    const expires_unix_ms = this.expiry(leaseMs);
    await this.db
      .insertInto('cluster_processes')
      .values({ process_id: processId, expires_unix_ms, is_dead: 0 })
      .execute();
  }

  async renew(processId: string, leaseMs: number): Promise<boolean> {
    const renewed = await this.db
      .updateTable('cluster_processes')
      .set({ expires_unix_ms: this.expiry(leaseMs) })
      .where('process_id', '=', processId)
      .where('is_dead', '=', 0)
      .returning('process_id')
      .executeTakeFirst();
    return renewed !== undefined;
  }

  async leave(processId: string): Promise<void> {
    await this.db.updateTable('cluster_processes').set({ is_dead: 1 }).where('process_id', '=', processId).execute();
  }

  async bury(): Promise<readonly string[]> {
    await this.db
      .updateTable('cluster_processes')
      .set({ is_dead: 1 })
      .where('is_dead', '=', 0)
      .where('expires_unix_ms', '<=', this.database.nowUnixMs)
      .execute();
    const rows = await this.db.selectFrom('cluster_processes').select('process_id').where('is_dead', '=', 1).execute();
    return rows.map((row) => row.process_id);
  }

  async listAlive(): Promise<readonly string[]> {
    const rows = await this.db.selectFrom('cluster_processes').select('process_id').where('is_dead', '=', 0).execute();
    return rows.map((row) => row.process_id);
  }

  async forget(processIds: readonly string[]): Promise<void> {
    if (processIds.length === 0) return;
    await this.db
      .deleteFrom('cluster_processes')
      .where('process_id', 'in', processIds)
      .where('is_dead', '=', 1)
      .execute();
  }

  private expiry(leaseMs: number) {
    return sql<number>`${this.database.nowUnixMs} + ${sql.lit(leaseMs)}`;
  }
}
