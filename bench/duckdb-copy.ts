import { DuckDBInstance } from '@duckdb/node-api';

// A process of its own for what DuckDB does: node duckdb-copy.js IN.jsonl OUT.parquet
const [input = '', output = ''] = process.argv.slice(2);
const quoted = (path: string) => `'${path.replaceAll("'", "''")}'`;
const connection = await (await DuckDBInstance.create(':memory:')).connect();
await connection.run(
  `COPY (SELECT * FROM read_json(${quoted(input)}, maximum_depth=1)) TO ${quoted(output)} (FORMAT parquet)`,
);
connection.closeSync();
