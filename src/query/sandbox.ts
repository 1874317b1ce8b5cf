import { stat } from 'node:fs/promises';
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBPreparedStatement,
  DuckDBTypeId,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
  StatementType,
} from '@duckdb/node-api';
import { z } from 'zod';
import { reasonOf } from '../core/errors.js';
import type { QueryFiles } from './files.js';
import { QueryError, type QueryLimits, type QueryMessage } from './protocol.js';
import { quoted, textList, VIEW_NAMES, viewStatements } from './views.js';

/** Settings that are applied first: no network, no extensions, no writes outside of memory. */
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
 * Opens a database in memory with views over these files. From then on it reads those files and no others, and no statement can change that: external access is off, and the configuration is locked.
 * The working directory of the process must be the folder of runs.
 * @param parquetPath where the answer may be written; `null` for nowhere
 */
export async function openSandbox(
  files: QueryFiles,
  limits: Pick<QueryLimits, 'memoryMegabytes' | 'threads'>,
  parquetPath: string | null = null,
): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', {
    ...CLOSED,
    memory_limit: `${limits.memoryMegabytes}MB`,
    threads: String(limits.threads),
  });
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  for (const statement of viewStatements(files)) await connection.run(statement);
  // DuckDB would allow writing to these files, too; `checkStatement` rejects all statements that write.
  await connection.run(
    `SET allowed_paths = ${textList([...files.parquet, ...files.summaries, ...(parquetPath === null ? [] : [parquetPath])])}`,
  );
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
  return connection;
}

/**
 * Runs one SELECT and posts its rows as they arrive, up to the limits.
 * @throws QueryError `tooLarge` if not even one row fits
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
  // Posted together with the first rows: before any output, a query can be started again.
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

/**
 * Runs one SELECT and writes its rows to a Parquet file, up to the limits.
 * @returns the end of the answer
 * @throws QueryError `invalid` for types that Parquet does not have, `tooLarge` if the file is too large
 */
export async function writeParquet(
  connection: DuckDBConnection,
  sql: string,
  { maxRows, maxResultBytes }: Pick<QueryLimits, 'maxRows' | 'maxResultBytes'>,
  path: string,
): Promise<QueryMessage> {
  await checkStatement(connection, sql);
  // DuckDB's own rendering has no semicolon or comment at its end, so it can be part of another statement.
  const select = await rewritten(connection, sql);
  const columns = integerColumns(await checkStatement(connection, select));
  const rows = `${columns} FROM (${select})`;
  const copy = `COPY (${rows}${maxRows === null ? '' : ` LIMIT ${maxRows}`}) TO ${quoted(path)} (FORMAT parquet, USE_TMP_FILE false)`;
  let count: number;
  try {
    count = Number((await connection.runAndReadAll(copy)).getRowsJson()[0]?.[0]);
  } catch (error) {
    throw unwritable(error);
  }
  const { size } = await stat(path);
  if (maxResultBytes !== null && size > maxResultBytes) {
    const [actual, most] = [size, maxResultBytes].map(mebibytes);
    throw new QueryError(
      'tooLarge',
      `the file takes ${actual}, and an answer ${most} at most; ask for fewer columns or rows`,
    );
  }
  if (count !== maxRows) return { type: 'end', isTruncated: false };
  const further = await connection.runAndReadAll(`SELECT 1 FROM (${select}) LIMIT 1 OFFSET ${maxRows}`);
  return { type: 'end', isTruncated: further.currentRowCount > 0 };
}

/** Returns a SELECT list that converts sums of integers, for which Parquet has no type, to its largest integers. */
function integerColumns(statement: DuckDBPreparedStatement): string {
  const wide = [DuckDBTypeId.HUGEINT, DuckDBTypeId.UHUGEINT];
  const names = Array.from({ length: statement.columnCount }, (_, index) => statement.columnName(index));
  const replaced = names
    .filter(
      (name, index) => wide.includes(statement.columnTypeId(index)) && names.indexOf(name) === names.lastIndexOf(name),
    )
    .map((name) => `"${name.replaceAll('"', '""')}"`)
    .map((name) => `${name}::BIGINT AS ${name}`);
  return replaced.length === 0 ? 'SELECT *' : `SELECT * REPLACE (${replaced.join(', ')})`;
}

/** Converts an error of writing Parquet. DuckDB's message quotes a statement that is not the user's, so that part is removed. */
function unwritable(error: unknown): unknown {
  const [message = ''] = reasonOf(error).split('\n\nLINE ');
  if (!/^(?:Not implemented|Conversion|Binder|Invalid Input) Error/i.test(message)) return error;
  const hint = 'Where Parquet has no type for a column, cast it, for example to VARCHAR.';
  return new QueryError('invalid', `${message}\n${hint}`, { cause: error });
}

/** Returns the size of a value as JSON in a list. */
function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

function tooLarge(byteCount: number, maxBytes: number): QueryError {
  const [size, limit] = [byteCount, maxBytes].map(mebibytes);
  const message = `the first row takes ${size}, and an answer ${limit} at most; ask for fewer columns, or parts of texts, for example left(message, 1000)`;
  return new QueryError('tooLarge', message);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Converts integers to numbers if a number represents them exactly, else to texts; times to texts in UTC. */
const toJson: DuckDBValueConverter<Json> = (value, type, converter) => {
  if (typeof value !== 'bigint') return JsonDuckDBValueConverter(value, type, converter);
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
};

/** Table functions that read nothing but their arguments. */
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
 * Accepts one SELECT, which may also be written as FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW, and which reads only the views. The sandbox would refuse other files as well; this check comes first,
 * and it prevents writing to the allowed files.
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

/** Parses a statement to a tree; `undefined` if it is not a SELECT. */
async function parse(connection: DuckDBConnection, sql: string): Promise<z.core.util.JSONType | undefined> {
  const rows = await connection.runAndReadAll(`SELECT json_serialize_sql(${quoted(sql)}::VARCHAR)`);
  const text = rows.getRowsJson()[0]?.[0];
  const { error, statements } = serializedSchema.parse(JSON.parse(typeof text === 'string' ? text : '{"error":true}'));
  return error ? undefined : statements;
}

/** Returns a statement as DuckDB renders it. */
async function rewritten(connection: DuckDBConnection, sql: string): Promise<string> {
  const tree = `json_serialize_sql(${quoted(sql)}::VARCHAR)`;
  const rows = await connection.runAndReadAll(`SELECT json_deserialize_sql(${tree})`);
  return String(rows.getRowsJson()[0]?.[0]);
}

/** Returns the first table function in a tree that may read something. */
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
