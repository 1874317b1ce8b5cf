import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import type { ExpectedRun } from './expected-runs.js';
import { type Tally, tally } from './tally.js';

/** What the Parquet files of a data folder hold of what was acknowledged. */
export interface ParquetFigures {
  readonly spans: Tally;
  readonly logs: Tally;
}

/** Reads all runs' Parquet files as one table, with a reader that is not the program's own. */
export async function auditParquet(dataFolder: string, runs: readonly ExpectedRun[]): Promise<ParquetFigures> {
  const connection = await (await DuckDBInstance.create()).connect();
  const table = `read_parquet('${join(dataFolder, 'runs', '*', 'telemetry*.parquet')}')`;
  const counted = async (key: string, recordType: string) => {
    const sql = `select ${key}, count(*) from ${table} where record_type = '${recordType}' group by 1`;
    return (await connection.runAndReadAll(sql)).getRows();
  };
  // A span's id as a number is its key.
  const spans = new Map((await counted('span_id', 'SpanEnd')).map(([id, count]) => [Number(id), Number(count)]));
  const logKey = "printf('%016x', span_id) || ' ' || epoch_ns(time_unix_nano)";
  const logs = new Map((await counted(logKey, 'LogRecord')).map(([key, count]) => [String(key), Number(count)]));
  connection.closeSync();
  return {
    spans: tally(new Map(runs.flatMap((run) => [...run.spanKeys].map((key) => [key, 1] as const))), spans),
    logs: tally(new Map(runs.flatMap((run) => [...run.logs])), logs),
  };
}
