import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pythonWith } from './python-venv.js';

/** Two Parquet files of telemetry, and how their rows belong together; `parquet_equality.py` says what each means. */
export interface ParquetPair {
  readonly theirs: string;
  readonly ours: string;
  readonly match: 'ids' | 'order' | 'otlp';
}

/** Python with pyarrow and DuckDB, installed once. */
export function parquetPython(): string {
  return pythonWith('parquet');
}

/** What pyarrow and DuckDB find different in two files. */
export function comparedParquet(pair: ParquetPair): unknown {
  const script = join('test', 'tool', 'parquet_equality.py');
  return JSON.parse(execFileSync(parquetPython(), [script], { input: JSON.stringify(pair), encoding: 'utf8' }));
}

/** What `comparedParquet` says of two files with equal cells. */
export function equalParquet(rowCount: number, match: ParquetPair['match']): unknown {
  const cells = { rowCount, differing: [], ...(match === 'ids' ? { repeatedKeys: 0 } : {}) };
  return { arrowSchemaEqual: true, parquetSchemaEqual: true, keyValuesEqual: true, pyarrow: cells, duckdb: cells };
}
