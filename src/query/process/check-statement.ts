import { type DuckDBConnection, type DuckDBPreparedStatement, StatementType } from '@duckdb/node-api';
import { z } from 'zod';
import { QueryError } from '../query-error.js';
import { VIEW_NAMES } from './view-sql.js';

/** Functions that make tables out of nothing but their arguments. */
const TABLE_FUNCTIONS = new Set([
  'generate_series',
  'json_each',
  'json_tree',
  'range',
  'repeat',
  'repeat_row',
  'unnest',
]);

const serializedSchema = z.object({ error: z.boolean(), statements: z.array(z.json()).optional() });

/**
 * Lets one SELECT through, which may be written as FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW too, and which uses the views
 * and no function that reads anything else. The sandbox would refuse files as well: this is the wall before it, and what
 * keeps allowed files from being written.
 * @throws QueryError `invalid`, `refused`
 */
export async function checkStatement(connection: DuckDBConnection, sql: string): Promise<DuckDBPreparedStatement> {
  if (sql.trim() === '') throw new QueryError('invalid', 'there is no SQL; for example: SELECT * FROM runs');
  const statements = await connection.extractStatements(sql);
  if (statements.count !== 1) {
    const what = statements.count === 0 ? 'there is no statement in it' : 'it is more than one statement';
    throw new QueryError('invalid', `${what}; a query is one SELECT (a PIVOT needs its values listed: ON x IN (…))`);
  }
  const tree = await parse(connection, sql);
  if (tree === undefined) throw notSelect();
  const refused = forbiddenFunction(tree);
  if (refused !== undefined) {
    const views = VIEW_NAMES.join(', ');
    throw new QueryError('refused', `the table function ${refused} is not available; query the views: ${views}`);
  }
  const prepared = await statements.prepare(0);
  if (prepared.statementType !== StatementType.SELECT) throw notSelect();
  return prepared;
}

/** The statement as a tree; `undefined` for one that is no SELECT. */
async function parse(connection: DuckDBConnection, sql: string): Promise<z.core.util.JSONType | undefined> {
  const literal = `'${sql.replaceAll("'", "''")}'`;
  const rows = await connection.runAndReadAll(`SELECT json_serialize_sql(${literal}::VARCHAR)`);
  const text = rows.getRowsJson()[0]?.[0];
  const { error, statements } = serializedSchema.parse(JSON.parse(typeof text === 'string' ? text : '{"error":true}'));
  return error ? undefined : statements;
}

/** The first table function in a tree that is not among those that read nothing. */
function forbiddenFunction(node: z.core.util.JSONType): string | undefined {
  const open: z.core.util.JSONType[] = [node];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one !== 'object' || one === null) continue;
    if (!Array.isArray(one) && one.type === 'TABLE_FUNCTION') {
      const name = functionName(one.function);
      if (!TABLE_FUNCTIONS.has(name)) return name;
    }
    open.push(...Object.values(one));
  }
  return undefined;
}

function functionName(node: z.core.util.JSONType | undefined): string {
  const isObject = typeof node === 'object' && node !== null && !Array.isArray(node);
  return isObject ? String(node.function_name).toLowerCase() : 'of an unknown name';
}

function notSelect(): QueryError {
  return new QueryError('refused', 'only SELECT is possible: nothing can be written, loaded, attached or set here');
}
