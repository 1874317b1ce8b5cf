import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_NAMESPACE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_QUERY_TEXT,
  ATTR_DB_SYSTEM_NAME,
} from '@opentelemetry/semantic-conventions';
import type { Redactor } from '../redaction/redactor.js';

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
