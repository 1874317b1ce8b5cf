import type { ExpressionBuilder } from 'kysely';
import type { StateTables } from './state-tables.js';

/** Set it whenever API-visible data of a run changes: its rows are then backed up again. */
export function touched({ eb }: { readonly eb: ExpressionBuilder<StateTables, 'executions'> }) {
  return { rows_revision: eb('rows_revision', '+', 1) };
}
