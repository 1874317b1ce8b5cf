import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBPreparedStatement,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
  StatementType,
} from '@duckdb/node-api';
import { z } from 'zod';
import type { QueryFiles } from './files.js';
import { QueryError, type QueryLimits, type QueryMessage } from './protocol.js';
import { textList, VIEW_NAMES, viewStatements } from './views.js';

/** Settings applied first: no network, no extensions, no writes outside memory. */
const CLOSED = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_unsigned_extensions: 'false',
  allow_persistent_secrets: 'false',
  temp_directory: '',
  max_temp_directory_size: '0B',
};

/**
 * Opens a database in memory with the views over these files. From then on it reads those files and no others, and no
 * statement can change that: external access is off, and the configuration is locked. The process must stand in the runs'
 * folder.
 */
export async function openSandbox(
  files: QueryFiles,
  limits: Pick<QueryLimits, 'memoryMegabytes' | 'threads'>,
): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', {
    ...CLOSED,
    memory_limit: `${limits.memoryMegabytes}MB`,
    threads: String(limits.threads),
  });
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  for (const statement of viewStatements(files)) await connection.run(statement);
  // Allowed files could be written, too: `checkStatement` lets nothing through that writes.
  await connection.run(`SET allowed_paths = ${textList([...files.parquet, ...files.summaries])}`);
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
  return connection;
}

/**
 * Runs one SELECT and gives its rows away as they come, as many as the limits allow.
 * @throws QueryError `tooLarge` where not even one row finds room
 */
export async function runStatement(
  connection: DuckDBConnection,
  sql: string,
  { maxRows, maxResultBytes }: Pick<QueryLimits, 'maxRows' | 'maxResultBytes'>,
  post: (message: QueryMessage) => Promise<void>,
): Promise<void> {
  const statement = await checkStatement(connection, sql);
  const result = await statement.stream();
  const names = result.deduplicatedColumnNames();
  const columns = names.map((name, index) => ({ name, type: String(result.columnType(index)) }));
  let rowsLeft = maxRows ?? Number.POSITIVE_INFINITY;
  let bytesLeft = (maxResultBytes ?? Number.POSITIVE_INFINITY) - bytesOf(columns);
  let isTruncated = false;
  let hasRow = false;
  let hasColumns = false;
  // Only once there are rows: before any output, a query can be started again.
  const postColumns = async () => {
    if (!hasColumns) await post({ type: 'columns', columns });
    hasColumns = true;
  };
  for await (const chunk of result.yieldConvertedRows(toJson)) {
    const rows: Json[][] = [];
    for (const row of chunk) {
      const byteCount = bytesOf(row);
      isTruncated = rowsLeft === 0 || byteCount > bytesLeft;
      if (isTruncated && !hasRow) throw tooLarge(bytesOf(columns) + byteCount, maxResultBytes ?? 0);
      if (isTruncated) break;
      rows.push(row);
      hasRow = true;
      rowsLeft -= 1;
      bytesLeft -= byteCount;
    }
    await postColumns();
    if (rows.length > 0) await post({ type: 'rows', rows });
    if (isTruncated) break;
  }
  await postColumns();
  await post({ type: 'end', isTruncated });
}

/** As JSON in a list. */
function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

function tooLarge(byteCount: number, maxBytes: number): QueryError {
  const [size, limit] = [byteCount, maxBytes].map((bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`);
  const message = `the first row takes ${size}, and an answer ${limit} at most; ask for fewer columns, or parts of texts, for example left(message, 1000)`;
  return new QueryError('tooLarge', message);
}

/** Integers are numbers as long as a number holds them exactly, else texts; times are texts in UTC. */
const toJson: DuckDBValueConverter<Json> = (value, type, converter) => {
  if (typeof value !== 'bigint') return JsonDuckDBValueConverter(value, type, converter);
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
};

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
    const what = statements.count === 0 ? 'it contains no statement' : 'it is more than one statement';
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

/** The statement as a tree; `undefined` if it is not a SELECT. */
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
  return new QueryError('refused', 'only SELECT is allowed: statements that write, load, attach or set are refused');
}
