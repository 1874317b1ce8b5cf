/** How a database reads quotes, as far as it decides where a literal ends. `unknown` where nobody knows. */
export interface SqlDialect {
  /** What `"…"` is. */
  readonly doubleQuotes: 'identifier' | 'string';
  /** Whether a backslash escapes the next character in a plain `'…'`. */
  readonly backslashEscapes: 'always' | 'never' | 'unknown';
  /** Whether `'''…'''` and `"""…"""` are strings that hold quotes. */
  readonly tripleQuotes: 'always' | 'never' | 'unknown';
  /** Whether `[…]` is a quoted identifier (else an array or a subscript). */
  readonly bracketIdentifiers: boolean;
  /** Whether `#` begins a comment. */
  readonly hashComments: 'always' | 'never' | 'unknown';
}

const STANDARD: SqlDialect = {
  doubleQuotes: 'identifier',
  backslashEscapes: 'never',
  tripleQuotes: 'never',
  bracketIdentifiers: false,
  hashComments: 'never',
};
const SPARK: SqlDialect = { ...STANDARD, doubleQuotes: 'string', backslashEscapes: 'always' };
const MYSQL: SqlDialect = { ...SPARK, hashComments: 'always' };
const T_SQL: SqlDialect = { ...STANDARD, bracketIdentifiers: true };

/** Where nothing is known, every doubt counts as a literal, and what follows an ambiguous quote is one. */
const UNKNOWN: SqlDialect = {
  doubleQuotes: 'string',
  backslashEscapes: 'unknown',
  tripleQuotes: 'unknown',
  bracketIdentifiers: false,
  hashComments: 'unknown',
};

/** Dialects by the engine's `adapter_type`; sources: the databases' own lexical documentation. */
const DIALECTS: ReadonlyMap<string, SqlDialect> = new Map([
  ['duckdb', STANDARD],
  ['postgres', STANDARD],
  ['trino', STANDARD],
  ['athena', STANDARD],
  ['redshift', { ...STANDARD, backslashEscapes: 'unknown' }],
  ['snowflake', { ...STANDARD, backslashEscapes: 'always' }],
  ['clickhouse', { ...STANDARD, backslashEscapes: 'always', hashComments: 'unknown' }],
  ['bigquery', { ...MYSQL, tripleQuotes: 'always' }],
  ['databricks', SPARK],
  ['spark', SPARK],
  ['mysql', MYSQL],
  ['mariadb', MYSQL],
  ['sqlserver', T_SQL],
  ['fabric', T_SQL],
]);

/** The dialect of an engine's `adapter_type`; the most careful one when it is not known. */
export function sqlDialectOf(adapterType: string | undefined): SqlDialect {
  return (adapterType === undefined ? undefined : DIALECTS.get(adapterType)) ?? UNKNOWN;
}
