import { type Kysely, sql, type Transaction } from 'kysely';
import type { FolderUsage } from '../core/folders.js';
import { slices } from '../core/lists.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { DatabaseTraits } from './database.js';
import type { StateTables } from './state-tables.js';
import { StoreError } from './store-error.js';

/** A file of a trace in the bucket. */
export interface SharedFile {
  /** As it is called in a run's folder. */
  readonly name: string;
  readonly objectKey: string;
  readonly sizeBytes: number;
}

/** A trace that a process looks after. */
export interface OpenTrace {
  readonly traceId: TraceId;
  readonly partition: number;
  /** A new value whenever the steps of its records change. */
  readonly stepVersion: number;
}

/** Values that one statement names. */
const ROWS_PER_STATEMENT = 1_000;

/** Which process has which partition of the journal, and with it which traces, and what of them is in the bucket. */
export class JournalStore {
  constructor(
    private readonly db: Kysely<StateTables>,
    private readonly database: Pick<DatabaseTraits, 'hasRowLocks'>,
  ) {}

  /** Returns the partitions that are the process's as far as the database knows. */
  async partitionsOf(processId: string): Promise<ReadonlySet<number>> {
    const rows = await this.db
      .selectFrom('journal_partitions')
      .select('partition_index')
      .where('process_id', '=', processId)
      .execute();
    return new Set(rows.map((row) => row.partition_index));
  }

  /**
   * Makes partitions the process's. Waits for what their earlier owners are just writing.
   * @throws StoreError `locked` where one of them was given to another process by this generation, or a later one
   */
  async claim(processId: string, generation: number, partitions: ReadonlySet<number>): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      for (const partition of [...partitions].sort((a, b) => a - b)) {
        const columns = { generation, process_id: processId };
        const row = await transaction
          .insertInto('journal_partitions')
          .values({ partition_index: partition, ...columns })
          .onConflict((conflict) =>
            conflict
              .column('partition_index')
              .doUpdateSet(columns)
              .where(({ eb, or }) =>
                or([
                  eb('journal_partitions.generation', '<', generation),
                  eb('journal_partitions.process_id', '=', processId),
                ]),
              ),
          )
          .returning('partition_index')
          .executeTakeFirst();
        if (row === undefined) {
          const problem = `partition ${partition} of the journal was given to another process`;
          throw new StoreError('locked', `${problem}, or the group of its readers began anew: it is tried again`);
        }
      }
    });
  }

  /** Opens a trace, which a process then looks after. @returns whether it was not known */
  async open(traceId: TraceId, partition: number): Promise<boolean> {
    const row = await this.db
      .insertInto('journal_traces')
      .values({ trace_id: traceId, partition_index: partition, is_open: 1 })
      .onConflict((conflict) =>
        conflict.column('trace_id').doUpdateSet(({ ref }) => ({
          partition_index: ref('excluded.partition_index'),
          is_open: 1,
          step_version: sql<number>`journal_traces.step_version + 1`,
        })),
      )
      .returning('step_version')
      .executeTakeFirstOrThrow();
    return row.step_version === 0;
  }

  /** Lists the traces that a process looks after. */
  async listOpen(processId: string): Promise<readonly OpenTrace[]> {
    const rows = await this.db
      .selectFrom('journal_traces as trace')
      .innerJoin('journal_partitions as part', 'part.partition_index', 'trace.partition_index')
      .select(['trace.trace_id', 'trace.partition_index', 'trace.step_version'])
      .where(sql<boolean>`trace.is_open = 1`)
      .where('part.process_id', '=', processId)
      .execute();
    return rows.map((row) => ({
      // Only written from a TraceId.
      traceId: row.trace_id as TraceId,
      partition: row.partition_index,
      stepVersion: row.step_version,
    }));
  }

  /** Closes a trace, which nobody has to look after any more. @returns false where it is another process's, or its steps have changed */
  async close(processId: string, { traceId, stepVersion }: Omit<OpenTrace, 'partition'>): Promise<boolean> {
    const closed = await this.db
      .updateTable('journal_traces')
      .set({ is_open: 0 })
      .where('trace_id', '=', traceId)
      .where('step_version', '=', stepVersion)
      .where(isOwned(processId))
      .returning('trace_id')
      .executeTakeFirst();
    return closed !== undefined;
  }

  /** Records that the steps of traces have changed: the process that owns them looks at them again. */
  async noteSteps(traceIds: readonly TraceId[]): Promise<void> {
    for (const traceId of traceIds) {
      await this.db
        .updateTable('journal_traces')
        .set(({ eb }) => ({ step_version: eb('step_version', '+', 1), is_open: 1 }))
        .where('trace_id', '=', traceId)
        .execute();
    }
  }

  /** Returns those of the traces that there are. */
  async known(traceIds: readonly TraceId[]): Promise<ReadonlySet<TraceId>> {
    const known = new Set<TraceId>();
    for (const some of slices(traceIds, ROWS_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('journal_traces')
        .select('trace_id')
        .where('trace_id', 'in', some)
        .execute();
      // Only written from a TraceId.
      for (const { trace_id } of rows) known.add(trace_id as TraceId);
    }
    return known;
  }

  async filesOf(traceId: TraceId): Promise<readonly SharedFile[]> {
    const rows = await this.db.selectFrom('journal_files').selectAll().where('trace_id', '=', traceId).execute();
    return rows.map((row) => ({ name: row.name, objectKey: row.object_key, sizeBytes: row.size_bytes }));
  }

  /** Count and size of the files of traces; of all traces by default. */
  async usage(traceIds?: readonly TraceId[]): Promise<FolderUsage> {
    let fileCount = 0;
    let sizeBytes = 0;
    for (const some of traceIds === undefined ? [undefined] : slices(traceIds, ROWS_PER_STATEMENT)) {
      const { files, bytes } = await this.db
        .selectFrom('journal_files')
        .select(({ fn }) => [fn.countAll().as('files'), fn.sum('size_bytes').as('bytes')])
        .$if(some !== undefined, (query) => query.where('trace_id', 'in', some ?? []))
        .executeTakeFirstOrThrow();
      fileCount += Number(files);
      sizeBytes += Number(bytes ?? 0);
    }
    return { fileCount, sizeBytes };
  }

  /** Files of many traces, those of the run that was written to last first. */
  async latestFiles(traceIds: readonly TraceId[]): Promise<readonly (SharedFile & { readonly traceId: TraceId })[]> {
    const found: (SharedFile & { readonly traceId: TraceId; readonly seenUnixMs: number })[] = [];
    for (const some of slices(traceIds, ROWS_PER_STATEMENT)) {
      const rows = await this.db
        .selectFrom('journal_files as file')
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

  /**
   * Records files in the bucket, in place of those of their names.
   * @param replacedFolder all files of the trace whose names begin with it are replaced, too, unless it is `null`
   * @returns false, without a change, where the trace is another's
   */
  async putFiles(
    processId: string,
    traceId: TraceId,
    files: readonly SharedFile[],
    replacedFolder: string | null,
  ): Promise<boolean> {
    return await this.db.transaction().execute(async (transaction) => {
      if ((await lockOwned(transaction, [traceId], processId, this.database.hasRowLocks)).size === 0) return false;
      if (replacedFolder !== null) {
        await transaction
          .deleteFrom('journal_files')
          .where('trace_id', '=', traceId)
          .where('name', 'like', `${replacedFolder}%`)
          .execute();
      }
      for (const { name, objectKey, sizeBytes } of files) {
        const columns = { object_key: objectKey, size_bytes: sizeBytes };
        await transaction
          .insertInto('journal_files')
          .values({ trace_id: traceId, name, ...columns })
          .onConflict((conflict) => conflict.columns(['trace_id', 'name']).doUpdateSet(columns))
          .execute();
      }
      return true;
    });
  }

  /** Returns whether one of the destinations has not got to the end of the trace's run. */
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

/** Returns whether a process looks after one of the traces. */
export async function isAnyOpen(db: Kysely<StateTables>, traceIds: readonly string[]): Promise<boolean> {
  if (traceIds.length === 0) return false;
  const open = await db
    .selectFrom('journal_traces')
    .select('trace_id')
    .where('trace_id', 'in', traceIds)
    .where('is_open', '=', 1)
    .limit(1)
    .executeTakeFirst();
  return open !== undefined;
}

/** Locks traces in the common order: processes that open them, or write of them, wait. */
export async function lockTraces(transaction: Transaction<StateTables>, traceIds: readonly TraceId[]): Promise<void> {
  if (traceIds.length === 0) return;
  await transaction
    .selectFrom('journal_traces')
    .select('trace_id')
    .where('trace_id', 'in', traceIds)
    .orderBy('trace_id')
    .forUpdate()
    .execute();
}

/** Deletes the rows of traces and of their files. @returns the keys of these files in the bucket */
export async function deleteTraces(
  transaction: Transaction<StateTables>,
  traceIds: readonly TraceId[],
): Promise<readonly string[]> {
  if (traceIds.length === 0) return [];
  const files = await transaction
    .deleteFrom('journal_files')
    .where('trace_id', 'in', traceIds)
    .returning('object_key')
    .execute();
  await transaction.deleteFrom('journal_traces').where('trace_id', 'in', traceIds).execute();
  return files.map(({ object_key }) => object_key);
}

const OWNED = sql`journal_traces as owned join journal_partitions as part on part.partition_index = owned.partition_index`;

/** Returns the condition that a row with a `trace_id` is of a trace of the process. */
export function isOwned(processId: string, column = 'trace_id') {
  return sql<boolean>`${sql.ref(column)} in (select owned.trace_id from ${OWNED} where part.process_id = ${processId})`;
}

/**
 * Locks those of the traces that the process owns: they stay so until the transaction ends, and nobody removes them.
 * @returns their ids
 */
async function lockOwned(
  transaction: Transaction<StateTables>,
  traceIds: readonly TraceId[],
  processId: string,
  hasRowLocks: boolean,
): Promise<ReadonlySet<string>> {
  // A claim waits for it, and so does a removal.
  const { rows } = await sql<{ trace_id: string }>`
    select owned.trace_id from ${OWNED}
    where owned.trace_id in (${sql.join(traceIds)}) and part.process_id = ${processId}
    order by owned.trace_id ${sql.raw(hasRowLocks ? 'for key share of owned for share of part' : '')}`.execute(
    transaction,
  );
  return new Set(rows.map((row) => row.trace_id));
}

/**
 * Keeps a process to the traces that it has, where several share a database: what it writes of another's is left out, in
 * the transaction that would have written it. So one that was suspended past its lease changes nothing.
 */
export interface Fence {
  /** Of this start of the program. */
  readonly processId: string;
  /** The id under which telemetry of other services is counted, which stays where it was received: that of the data folder. */
  readonly folderId: string;
}

/** Leaves out rows of traces that the process does not own; it owns the others until the transaction ends. */
export async function onlyOwned<Row extends { readonly traceId: TraceId }>(
  transaction: Transaction<StateTables>,
  rows: readonly Row[],
  fence: Fence | undefined,
): Promise<readonly Row[]> {
  if (fence === undefined || rows.length === 0) return rows;
  const traceIds = rows.map(({ traceId }) => traceId);
  // Only PostgreSQL is shared by several processes.
  const owned = await lockOwned(transaction, traceIds, fence.processId, true);
  return rows.filter(({ traceId }) => owned.has(traceId));
}
