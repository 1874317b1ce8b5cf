import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_NAMESPACE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_QUERY_TEXT,
  ATTR_DB_SYSTEM_NAME,
} from '@opentelemetry/semantic-conventions';
import {
  ATTR_DB_RESPONSE_RETURNED_ROWS,
  ATTR_TEST_CASE_NAME,
  ATTR_TEST_CASE_RESULT_STATUS,
  TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  TEST_CASE_RESULT_STATUS_VALUE_PASS,
} from '@opentelemetry/semantic-conventions/incubating';
import type { Redactor } from '../../redaction/redactor.js';
import type { NodeVerdict } from '../../run/run-summary.js';
import { int64Value } from './flatten-attributes.js';
import type { Interval } from './ids-and-times.js';
import type { MappingSwitches } from './mapping-options.js';
import type { NodeIndex } from './node-index.js';

/** Names of OTel's `db.system.name` by the engine's `adapter_type`, where they differ. */
const SYSTEMS: ReadonlyMap<string, string> = new Map([
  ['postgres', 'postgresql'],
  ['redshift', 'aws.redshift'],
  ['athena', 'aws.athena'],
  ['bigquery', 'gcp.bigquery'],
  ['sqlserver', 'microsoft.sql_server'],
  ['fabric', 'microsoft.sql_server'],
  ['synapse', 'microsoft.sql_server'],
  ['oracle', 'oracle.db'],
]);

/**
 * Writes a record's statement: as `db.query.text` beside the other `db.*` attributes for a query, as `sql` otherwise. Where
 * no SQL may be shown, `run_bridge.sql.sha256` stands for a statement that the engine gave no `sql_hash`.
 * @param database where the relation lies that the query works for, for `db.namespace`.
 */
export function writeStatement(
  record: { text(name: string): string | undefined },
  into: OtelAttributes,
  redactor: Redactor,
  database: { readonly database: string | undefined; readonly schema: string | undefined } | undefined,
  isDatabaseSpan: boolean,
): void {
  const statement = record.text('sql');
  const adapterType = record.text('adapter_type');
  const sql = statement === undefined ? undefined : redactor.sql(statement, adapterType);
  if (sql?.text !== undefined) into[isDatabaseSpan ? ATTR_DB_QUERY_TEXT : 'sql'] = sql.text;
  else if (sql?.sha256 !== undefined && record.text('sql_hash') === undefined)
    into['run_bridge.sql.sha256'] = sql.sha256;
  if (!isDatabaseSpan) return;
  if (adapterType !== undefined) into[ATTR_DB_SYSTEM_NAME] = SYSTEMS.get(adapterType) ?? adapterType;
  if (sql?.operation !== undefined) into[ATTR_DB_OPERATION_NAME] = sql.operation;
  if (sql?.summary !== undefined) into[ATTR_DB_QUERY_SUMMARY] = sql.summary;
  if (sql?.collection !== undefined) into[ATTR_DB_COLLECTION_NAME] = sql.collection;
  const namespace = [database?.database, database?.schema].filter((part) => part !== undefined && part !== '');
  if (namespace.length > 0) into[ATTR_DB_NAMESPACE] = namespace.join('|');
}

/**
 * Writes what the span of a processed node carries beside the engine's attributes: what share of its time its queries took,
 * how many rows it came to, and of a test its name and result.
 * @param verdict `undefined` where nobody knows
 */
export function writeNodeAttributes(
  span: Interval & { text(name: string): string | undefined },
  known: { readonly nodes: NodeIndex; readonly switches: MappingSwitches; readonly verdict: NodeVerdict | undefined },
  into: OtelAttributes,
): void {
  const { nodes, switches, verdict } = known;
  const uniqueId = span.text('unique_id');
  if (uniqueId === undefined) return;
  if (switches['query-time']) writeQueryTime(nodes, uniqueId, span, into);
  const rows = switches['database-attributes'] ? span.text('rows_affected') : undefined;
  if (rows !== undefined) into[ATTR_DB_RESPONSE_RETURNED_ROWS] = int64Value(rows);
  const name = testNameOf(uniqueId);
  if (name === undefined) return;
  into[ATTR_TEST_CASE_NAME] = name;
  const result = verdict === undefined ? undefined : RESULTS[verdict];
  if (result !== undefined) into[ATTR_TEST_CASE_RESULT_STATUS] = result;
}

function writeQueryTime(nodes: NodeIndex, uniqueId: string, span: Interval, into: OtelAttributes): void {
  const queryTime = nodes.queryTimeOf(uniqueId, span);
  if (queryTime === undefined) return;
  into['run_bridge.node.query_count'] = queryTime.count;
  into['run_bridge.node.query_time_ms'] = Math.trunc(queryTime.nanos / 1_000) / 1_000;
}

/** `not_null_orders_id` of `test.shop.not_null_orders_id.1a2b3c4d5e`, `adds_up` of `unit_test.shop.orders.adds_up`. */
function testNameOf(uniqueId: string): string | undefined {
  const parts = uniqueId.split('.');
  if (parts[0] === 'unit_test') return parts.at(-1);
  return parts[0] === 'test' ? parts[2] : undefined;
}

/** A warning does not fail a test. What did not run to its end has no result. */
const RESULTS: Readonly<Partial<Record<NodeVerdict, string>>> = {
  success: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  warned: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  failed: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  error: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
};
