import { type Selectable, sql } from 'kysely';
import type { FolderUsage } from '../../core/folders.js';
import { slices } from '../../core/lists.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { DatabaseTraits } from '../database-traits.js';
import type { StateDb, StateTables } from '../state-tables.js';
import type { SharedFile, SharedTrace, SharedTraceStore } from './shared-trace-store.js';

/** Traces that one statement asks for. */
const TRACES_PER_STATEMENT = 1_000;

/** Rows of traces that processes share, in an SQL database. */
export class SqlSharedTraceStore implements SharedTraceStore {
  constructor(
    private readonly db: StateDb,
    private readonly database: Pick<DatabaseTraits, 'hasRowLocks'>,
  ) {}

  async find(traceId: TraceId): Promise<SharedTrace | undefined> {
    const row = await this.db
      .selectFrom('cluster_traces')
      .selectAll()
      .where('trace_id', '=', traceId)
      .executeTakeFirst();
    return row && toTrace(row);
  }

  async known(traceIds: readonly TraceId[]): Promise<ReadonlySet<TraceId>> {
    const known = new Set<TraceId>();
    for (const some of slices(traceIds, TRACES_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('cluster_traces')
        .select('trace_id')
        .where('trace_id', 'in', some)
        .execute();
      // Only written from a TraceId.
      for (const { trace_id } of rows) known.add(trace_id as TraceId);
    }
    return known;
  }

  async listOf(processId: string): Promise<readonly SharedTrace[]> {
    const rows = await this.db.selectFrom('cluster_traces').selectAll().where('owner', '=', processId).execute();
    return rows.map(toTrace);
  }

  async claim(processId: string, limit: number): Promise<number> {
    return await this.db.transaction().execute(async (transaction) => {
      const left = transaction
        .selectFrom('cluster_traces')
        .select('trace_id')
        .where('owner', 'is not', null)
        .where(({ eb, selectFrom }) =>
          eb('owner', 'not in', selectFrom('cluster_processes').select('process_id').where('is_dead', '=', 0)),
        )
        .limit(limit);
      // Rows locked by others are skipped.
      const rows = await (this.database.hasRowLocks ? left.forUpdate().skipLocked() : left).execute();
      if (rows.length === 0) return 0;
      await transaction
        .updateTable('cluster_traces')
        .set(({ eb }) => ({ owner: processId, generation: eb('generation', '+', 1) }))
        .where(
          'trace_id',
          'in',
          rows.map((row) => row.trace_id),
        )
        .execute();
      return rows.length;
    });
  }

  async isOwn(processId: string, traceId: TraceId): Promise<boolean> {
    return (await this.find(traceId))?.owner === processId;
  }

  async noteSteps(processId: string, traceIds: readonly TraceId[]): Promise<void> {
    for (const traceId of traceIds) {
      await this.db
        .updateTable('cluster_traces')
        .set(({ eb, fn, val, ref }) => ({
          step_version: eb('step_version', '+', 1),
          owner: fn.coalesce(ref('owner'), val(processId)),
          generation: eb
            .case()
            .when('owner', 'is', null)
            .then(eb('generation', '+', 1))
            .else(ref('generation'))
            .end(),
        }))
        .where('trace_id', '=', traceId)
        .execute();
    }
  }

  async filesOf(traceId: TraceId): Promise<readonly SharedFile[]> {
    const rows = await this.db.selectFrom('cluster_files').selectAll().where('trace_id', '=', traceId).execute();
    return rows.map((row) => ({ name: row.name, objectKey: row.object_key, sizeBytes: row.size_bytes }));
  }

  async usage(traceIds?: readonly TraceId[]): Promise<FolderUsage> {
    let fileCount = 0;
    let sizeBytes = 0;
    for (const some of traceIds === undefined ? [undefined] : slices(traceIds, TRACES_PER_STATEMENT)) {
      const { files, bytes } = await this.db
        .selectFrom('cluster_files')
        .select(({ fn }) => [fn.countAll().as('files'), fn.sum('size_bytes').as('bytes')])
        .$if(some !== undefined, (query) => query.where('trace_id', 'in', some ?? []))
        .executeTakeFirstOrThrow();
      fileCount += Number(files);
      sizeBytes += Number(bytes ?? 0);
    }
    return { fileCount, sizeBytes };
  }

  async latestFiles(traceIds: readonly TraceId[]): Promise<readonly (SharedFile & { readonly traceId: TraceId })[]> {
    const found: (SharedFile & { readonly traceId: TraceId; readonly seenUnixMs: number })[] = [];
    for (const some of slices(traceIds, TRACES_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('cluster_files as file')
        .leftJoin('runs as run', 'run.trace_id', 'file.trace_id')
        .selectAll('file')
        .select('run.last_seen_unix_ms')
        .where('file.trace_id', 'in', some)
        .execute();
      for (const row of rows) {
        // Only written from a TraceId.
        const traceId = row.trace_id as TraceId;
        const seenUnixMs = row.last_seen_unix_ms ?? 0;
        found.push({ traceId, name: row.name, objectKey: row.object_key, sizeBytes: row.size_bytes, seenUnixMs });
      }
    }
    found.sort((a, b) => b.seenUnixMs - a.seenUnixMs);
    return found.map(({ seenUnixMs: _seen, ...file }) => file);
  }

  async putFiles(
    processId: string,
    traceId: TraceId,
    files: readonly SharedFile[],
    storedPart?: number,
  ): Promise<boolean> {
    return await this.db.transaction().execute(async (transaction) => {
      const row = transaction
        .selectFrom('cluster_traces')
        .select('trace_id')
        .where('trace_id', '=', traceId)
        .where('owner', '=', processId);
      if ((await (this.database.hasRowLocks ? row.forUpdate() : row).executeTakeFirst()) === undefined) return false;
      for (const { name, objectKey, sizeBytes } of files) {
        const columns = { object_key: objectKey, size_bytes: sizeBytes };
        await transaction
          .insertInto('cluster_files')
          .values({ trace_id: traceId, name, ...columns })
          .onConflict((conflict) => conflict.columns(['trace_id', 'name']).doUpdateSet(columns))
          .execute();
      }
      if (storedPart === undefined) return true;
      await transaction
        .updateTable('cluster_traces')
        .set({ stored_part: storedPart })
        .where('trace_id', '=', traceId)
        .execute();
      await transaction
        .deleteFrom('cluster_parts')
        .where('trace_id', '=', traceId)
        .where('part', '<=', storedPart)
        .execute();
      return true;
    });
  }

  async removeFile(processId: string, traceId: TraceId, name: string): Promise<void> {
    await this.db
      .deleteFrom('cluster_files')
      .where('trace_id', '=', traceId)
      .where('name', '=', name)
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('cluster_traces as held')
            .select('held.trace_id')
            .where('held.trace_id', '=', traceId)
            .where('held.owner', '=', processId),
        ),
      )
      .execute();
  }

  async release(
    processId: string,
    { traceId, stepVersion }: Pick<SharedTrace, 'traceId' | 'stepVersion'>,
  ): Promise<boolean> {
    const released = await this.db
      .updateTable('cluster_traces')
      .set({ owner: null })
      .where('trace_id', '=', traceId)
      .where('owner', '=', processId)
      .where('step_version', '=', stepVersion)
      .whereRef('last_part', '=', 'stored_part')
      .returning('trace_id')
      .executeTakeFirst();
    return released !== undefined;
  }

  async isExportPending(traceId: TraceId, destinations: readonly string[]): Promise<boolean> {
    if (destinations.length === 0) return false;
    const { rows } = await sql<{ name: string }>`
      select target.name as name from destinations as target
      join runs as run on run.trace_id = ${traceId}
      left join export_cursors as sent on sent.destination = target.name and sent.trace_id = run.trace_id
      where target.name in (${sql.join(destinations)})
        and (sent.trace_id is not null or run.first_seen_unix_ms >= target.since_unix_ms)
        and (sent.trace_id is null or sent.finished_at_bytes is null or sent.finished_at_bytes <> run.log_bytes)
      limit 1`.execute(this.db);
    return rows.length > 0;
  }
}

function toTrace(row: Selectable<StateTables['cluster_traces']>): SharedTrace {
  return {
    // Only written from a TraceId.
    traceId: row.trace_id as TraceId,
    owner: row.owner,
    generation: row.generation,
    lastPart: row.last_part,
    storedPart: row.stored_part,
    stepVersion: row.step_version,
    bornUnixMs: row.born_unix_ms,
  };
}
