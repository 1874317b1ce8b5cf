/**
 * The columns of the runs' Parquet files as DuckDB sees them, for the views of a data folder that has no file yet. It is the
 * engine's own layout.
 */
export const RECORD_COLUMNS: readonly (readonly [name: string, type: string])[] = [
  ['record_type', 'VARCHAR'],
  ['trace_id', 'VARCHAR'],
  ['span_id', 'UBIGINT'],
  ['event_id', 'VARCHAR'],
  ['span_name', 'VARCHAR'],
  ['parent_span_id', 'UBIGINT'],
  ['links', 'STRUCT(trace_id VARCHAR, span_id UBIGINT, json_payload VARCHAR)[]'],
  ['start_time_unix_nano', 'TIMESTAMP_NS'],
  ['end_time_unix_nano', 'TIMESTAMP_NS'],
  ['time_unix_nano', 'TIMESTAMP_NS'],
  ['severity_number', 'INTEGER'],
  ['severity_text', 'VARCHAR'],
  ['body', 'VARCHAR'],
  ['status_code', 'UINTEGER'],
  ['status_message', 'VARCHAR'],
  ['event_type', 'VARCHAR'],
  [
    'attributes',
    'STRUCT(json_payload VARCHAR, "name" VARCHAR, "database" VARCHAR, "schema" VARCHAR, identifier VARCHAR, ' +
      'dbt_core_event_code VARCHAR, phase VARCHAR, unique_id VARCHAR, materialization VARCHAR, ' +
      'custom_materialization VARCHAR, node_type VARCHAR, node_outcome VARCHAR, node_error_type VARCHAR, ' +
      'node_cancel_reason VARCHAR, node_skip_reason VARCHAR, sao_enabled BOOLEAN, dev_name VARCHAR, file VARCHAR, ' +
      'line UINTEGER, code UINTEGER, code_name VARCHAR, original_severity_number INTEGER, ' +
      'original_severity_text VARCHAR, package_name VARCHAR, relative_path VARCHAR, code_line UINTEGER, ' +
      'code_column UINTEGER, artifact_type VARCHAR, query_id VARCHAR, query_outcome VARCHAR, adapter_type VARCHAR, ' +
      'query_error_vendor_code INTEGER, content_hash VARCHAR, output_format VARCHAR, "content" VARCHAR, ' +
      'duration_ms UBIGINT, rows_affected UBIGINT, "group" VARCHAR)',
  ],
];
