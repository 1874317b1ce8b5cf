import type { ExpressionBuilder } from 'kysely';
import type { StateTables } from './state-tables.js';

/** To be set whenever something of a run changes that the API shows: its rows are then kept anew. */
export function touched({ eb }: { readonly eb: ExpressionBuilder<StateTables, 'executions'> }) {
  return { rows_revision: eb('rows_revision', '+', 1) };
}
