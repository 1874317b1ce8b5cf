import type { Transaction } from 'kysely';
import type { TraceId } from '../record/telemetry-record.js';
import { lockOwn } from './journal-store.js';
import type { StateTables } from './state-tables.js';

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

/** The traces that the process owns; they stay so until the transaction ends. All of them if they are not shared. */
export async function ownTraces(
  transaction: Transaction<StateTables>,
  traceIds: readonly TraceId[],
  fence: Fence | undefined,
): Promise<ReadonlySet<string>> {
  if (fence === undefined || traceIds.length === 0) return new Set(traceIds);
  return await lockOwn(transaction, traceIds, fence.processId);
}
