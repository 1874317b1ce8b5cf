import {
  type DuckDBConnection,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
} from '@duckdb/node-api';
import { QueryError } from '../query-error.js';
import type { QueryLimits } from '../query-limits.js';
import type { QueryMessage } from '../query-messages.js';
import { checkStatement } from './check-statement.js';

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
  // Only once there are rows: as long as nothing was said, a query can be begun again.
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
