import type { CustomTypesConfig } from 'pg';
import { types } from 'pg';

/** PostgreSQL's numbers for its types `bigint` and `numeric`. */
const INT8 = 20;
const NUMERIC = 1700;

/**
 * How values come back: as from SQLite. `bigint` (also what `count` answers) and `numeric` (what `sum` makes of it) are
 * numbers; milliseconds, bytes and ids stay far below the 2^53 from which a number is not exact.
 */
export const POSTGRES_TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8 || oid === NUMERIC ? Number : types.getTypeParser(oid, format)),
};
