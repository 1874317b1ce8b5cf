import type { Transaction } from 'kysely';
import { slices } from '../core/lists.js';
import type { InvocationNote, TraceNote } from './invocation-store.js';
import type { StateTables } from './state-tables.js';

/** Rows asked for, or written, by one statement. */
const ROWS_PER_STATEMENT = 500;

/**
 * Links traces with steps that their telemetry names before these are registered: registration then finds its traces.
 * @returns the notes, with the step if it was registered meanwhile
 */
export async function findNamedSteps(
  transaction: Transaction<StateTables>,
  notes: readonly TraceNote[],
): Promise<readonly TraceNote[]> {
  const links = notes.flatMap(({ traceId, invocations }) =>
    [...new Set(invocations.flatMap((note) => unregistered(note) ?? []))].map((step_id) => ({
      trace_id: traceId,
      step_id,
    })),
  );
  if (links.length === 0) return notes;
  const begun = new Set<string>();
  for (const some of slices(links, ROWS_PER_STATEMENT)) {
    await transaction
      .insertInto('step_traces')
      .values([...some])
      .onConflict((conflict) => conflict.columns(['trace_id', 'step_id']).doNothing())
      .execute();
    const stepIds = some.map(({ step_id }) => step_id);
    const rows = await transaction
      .selectFrom('execution_steps')
      .select('step_id')
      .where('step_id', 'in', stepIds)
      .execute();
    for (const { step_id } of rows) begun.add(step_id);
  }
  if (begun.size === 0) return notes;
  const found = (note: InvocationNote) =>
    [unregistered(note)].find((stepId) => stepId !== null && begun.has(stepId)) ?? null;
  return notes.map(({ traceId, invocations }) => ({
    traceId,
    invocations: invocations.map((note) => ({ ...note, stepId: note.stepId ?? found(note) })),
  }));
}

function unregistered({ stepId, namedStepId }: InvocationNote): string | null {
  return stepId === null ? namedStepId : null;
}
