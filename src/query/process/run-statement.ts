import {
  type DuckDBConnection,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
} from '@duckdb/node-api';
import type { QueryLimits } from '../query-limits.js';
import type { QueryMessage } from '../query-messages.js';
import { checkStatement } from './check-statement.js';

/** Runs one SELECT and gives its rows away as they come, as many as the limits allow. */
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
  let bytesLeft = maxResultBytes ?? Number.POSITIVE_INFINITY;
  let isTruncated = false;
  let hasRow = false;
  let hasColumns = false;
  // Only once there are rows: as long as nothing was said, a query can be begun again.
  const postColumns = async () => {
    if (!hasColumns) await post({ type: 'columns', columns });
    hasColumns = true;
  };
  for await (const chunk of result.yieldConvertedRows(toJson)) {
    const rows: Json[][] = [];
    for (const row of chunk) {
      const byteCount = Buffer.byteLength(JSON.stringify(row));
      isTruncated = rowsLeft === 0 || (hasRow && byteCount > bytesLeft);
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

/** Integers are numbers as long as a number holds them exactly, else texts; times are texts in UTC. */
const toJson: DuckDBValueConverter<Json> = (value, type, converter) => {
  if (typeof value !== 'bigint') return JsonDuckDBValueConverter(value, type, converter);
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
};
