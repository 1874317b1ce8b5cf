import type { Transaction } from 'kysely';
import type { StateTables } from './state-tables.js';

/** A run takes no more steps from now on. */
export async function closeRun(transaction: Transaction<StateTables>, runId: number): Promise<void> {
  await transaction
    .updateTable('executions')
    .set({ state: 'closing' })
    .where('id', '=', runId)
    .where('state', '=', 'open')
    .execute();
}

/** Ends a run that accepts no more steps once none is running. Returns the number of running ones. */
export async function finishIfOver(
  transaction: Transaction<StateTables>,
  runId: number,
  nowUnixMs: number | null = null,
): Promise<number> {
  const { running, ended } = await transaction
    .selectFrom('execution_steps')
    .where('execution_id', '=', runId)
    .select(({ fn }) => [
      fn.countAll<number>().filterWhere('ending', 'is', null).as('running'),
      fn.max('ended_unix_ms').as('ended'),
    ])
    .executeTakeFirstOrThrow();
  if (running > 0) return running;
  await transaction
    .updateTable('executions')
    .set({ state: 'finished', ended_unix_ms: ended ?? nowUnixMs })
    .where('id', '=', runId)
    .where('state', '=', 'closing')
    .execute();
  return 0;
}
