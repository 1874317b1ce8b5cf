import type { Transaction } from 'kysely';
import type { TraceId } from '../record/telemetry-record.js';
import type { StateTables } from './state-tables.js';

/**
 * Keeps a process to the traces that it has, where several share a database: what it writes of another's is left out, in
 * the transaction that would have written it. So one that was suspended past its lease changes nothing.
 */
export interface Fence {
  /** This life of the process; another one after its lease was lost. */
  readonly processId: string;
  /** The id under which telemetry of other services is counted, which stays where it was received: that of the data folder. */
  readonly folderId: string;
}

/** The traces that the process owns; they stay so until the transaction ends. All of them if they are not shared. */
export async function ownTraces(
  transaction: Transaction<StateTables>,
  traceIds: readonly TraceId[],
  fence: Fence | undefined,
): Promise<ReadonlySet<string>> {
  if (fence === undefined || traceIds.length === 0) return new Set(traceIds);
  const query = transaction
    .selectFrom('cluster_traces')
    .select('trace_id')
    .where('trace_id', 'in', traceIds)
    .where('owner', '=', fence.processId)
    .orderBy('trace_id')
    // Does not wait for transactions that only count parts, and makes a claim wait. Only PostgreSQL has fences.
    .forKeyShare();
  return new Set((await query.execute()).map((row) => row.trace_id));
}
