import { EXECUTING_PHASES, NO_ROWS_PATTERN, PREPARING_COMMANDS } from '../run/measures/execution.js';
import { NODE_VERDICTS } from '../run/verdict.js';
import type { UnnamedRun } from '../storage/trace-catalog.js';
import type { QueryFiles } from './files.js';

/** The views that queries read; docs/see.md lists their columns. */
export const VIEW_NAMES = ['runs', 'steps', 'nodes', 'tests', 'queries', 'records'] as const;

/** The longest run.json that is read, in bytes: about 8,000 steps. Each thread takes twice as much memory to read them. */
const MAX_SUMMARY_BYTES = 8 * 1024 * 1024;

/** Returns the statements that create the views over these files, in order. Files are not read before a query needs them. */
export function viewStatements(files: QueryFiles): readonly string[] {
  return [recordsView(files.parquet), stepsView(files), RUNS_VIEW, NODES_VIEW, TESTS_VIEW, QUERIES_VIEW];
}

/** Returns a list of texts in SQL. */
export function textList(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(', ')}]`;
}

/** Returns a text as an SQL literal. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function recordsView(parquet: readonly string[]): string {
  const source =
    parquet.length > 0
      ? `read_parquet(${textList(parquet)}, filename = true)`
      : `(SELECT ${RECORD_COLUMNS.map(([name, type]) => `NULL::${type} AS "${name}"`).join(', ')},
           NULL::VARCHAR AS filename WHERE false)`;
  return `CREATE VIEW records AS
    SELECT * EXCLUDE (filename), attributes.unique_id AS unique_id, split_part(filename, '/', -1) AS parquet_file
    FROM ${source}`;
}

const SUMMARY_COLUMNS = `{
  trace_id: 'VARCHAR', invocation_id: 'VARCHAR',
  steps: 'STRUCT("index" INTEGER, command VARCHAR, raw_command VARCHAR, start_time_unix_nano VARCHAR,
    end_time_unix_nano VARCHAR, verdict VARCHAR, status_message VARCHAR, total_errors INTEGER, total_warnings INTEGER,
    node_counts MAP(VARCHAR, INTEGER),
    record_count BIGINT, parquet_file VARCHAR,
    step STRUCT(id VARCHAR, "index" INTEGER, run_id BIGINT, run_key VARCHAR, job VARCHAR, environment VARCHAR,
      project VARCHAR, reason VARCHAR))[]'
}`;

/** Returns the runs without a step as rows in SQL; without runs, only the types of the columns. */
function unnamedRuns(unnamed: readonly UnnamedRun[]): string {
  const texts = (column: 'traceId' | 'job' | 'environment' | 'project') =>
    `[${unnamed.map((run) => (run[column] === null ? 'NULL' : quoted(run[column]))).join(', ')}]::VARCHAR[]`;
  const numbers = (column: 'commandIndex' | 'runId') =>
    `[${unnamed.map((run) => String(run[column])).join(', ')}]::BIGINT[]`;
  return `(SELECT unnest(${texts('traceId')}) AS trace_id, unnest(${numbers('commandIndex')}) AS command_index,
    unnest(${numbers('runId')}) AS run_id, unnest(${texts('job')}) AS job,
    unnest(${texts('environment')}) AS environment, unnest(${texts('project')}) AS project)`;
}

function stepsView({ summaries, unnamed }: QueryFiles): string {
  const source =
    summaries.length > 0
      ? `read_json(${textList(summaries)}, format = 'unstructured', columns = ${SUMMARY_COLUMNS},
           maximum_object_size = ${MAX_SUMMARY_BYTES})`
      : `(SELECT trace_id, invocation_id, from_json(steps, ${EMPTY_STEPS}) AS steps
           FROM (SELECT NULL::VARCHAR AS trace_id, NULL::VARCHAR AS invocation_id, NULL::JSON AS steps) WHERE false)`;
  return `CREATE VIEW steps AS
    SELECT coalesce(s.step.run_id, n.run_id) AS run_id, s.step.run_key AS run_key,
      CASE WHEN s.step IS NULL AND n.run_id IS NOT NULL THEN 1 ELSE s.step."index" END AS step_index,
      coalesce(s.step.job, n.job, 'adhoc') AS job, coalesce(s.step.environment, n.environment) AS environment,
      coalesce(s.step.project, n.project) AS project, s.step.reason AS reason, t.trace_id AS trace_id, invocation_id, s."index" AS command_index, s.command AS command,
      s.raw_command AS raw_command, coalesce(s.verdict, 'running') AS status, s.status_message AS status_message,
      make_timestamp_ns(s.start_time_unix_nano::BIGINT) AS started_at,
      make_timestamp_ns(s.end_time_unix_nano::BIGINT) AS ended_at,
      (s.end_time_unix_nano::BIGINT - s.start_time_unix_nano::BIGINT) / 1e6 AS length_ms,
      s.total_errors AS total_errors, s.total_warnings AS total_warnings,
      list_sum(map_values(s.node_counts))::BIGINT AS node_count,
      ${NODE_VERDICTS.map((verdict) => `s.node_counts['${verdict}'] AS ${verdict}_count`).join(', ')},
      (list_sum(map_values(s.node_counts)) - ${NODE_VERDICTS.map((verdict) => `s.node_counts['${verdict}']`).join(' - ')})::INTEGER
        AS other_count,
      s.record_count AS record_count, s.parquet_file AS parquet_file
    FROM (SELECT trace_id, invocation_id, unnest(steps) AS s FROM ${source}) AS t
    LEFT JOIN ${unnamedRuns(unnamed)} AS n ON n.trace_id = t.trace_id AND n.command_index = t.s."index"`;
}

/** The shape of `steps` for `from_json`. */
const EMPTY_STEPS = `'[{"index":"INTEGER","command":"VARCHAR","raw_command":"VARCHAR","start_time_unix_nano":"VARCHAR",
  "end_time_unix_nano":"VARCHAR","verdict":"VARCHAR","status_message":"VARCHAR","total_errors":"INTEGER",
  "total_warnings":"INTEGER","node_counts":"MAP(VARCHAR, INTEGER)","record_count":"BIGINT","parquet_file":"VARCHAR",
  "step":{"id":"VARCHAR","index":"INTEGER","run_id":"BIGINT","run_key":"VARCHAR","job":"VARCHAR","environment":"VARCHAR",
  "project":"VARCHAR","reason":"VARCHAR"}}]'`;

const RUNS_VIEW = `CREATE VIEW runs AS
  SELECT any_value(run_id) AS run_id, any_value(run_key) AS run_key, any_value(job) AS job,
    any_value(environment) AS environment, any_value(project) AS project, any_value(reason) AS reason,
    CASE WHEN bool_or(status = 'running') THEN 'running' WHEN bool_or(status IN ('error', 'lost')) THEN 'error'
      WHEN bool_or(status = 'canceled') THEN 'canceled' ELSE 'success' END AS status,
    min(started_at) AS started_at, max(ended_at) AS ended_at,
    (epoch_ns(max(ended_at)) - epoch_ns(min(started_at))) / 1e6 AS length_ms, count(*) AS step_count,
    sum(node_count)::BIGINT AS node_count, sum(error_count)::BIGINT AS error_count, sum(failed_count)::BIGINT AS failed_count,
    sum(warned_count)::BIGINT AS warned_count, sum(skipped_count)::BIGINT AS skipped_count,
    sum(record_count)::BIGINT AS record_count, list(DISTINCT trace_id) AS trace_ids
  FROM steps GROUP BY coalesce(run_id::VARCHAR, trace_id)`;

function sqlList(texts: readonly string[]): string {
  return `(${texts.map(quoted).join(', ')})`;
}

/** The rule of `isExecuted` in SQL. */
const IS_EXECUTED = `coalesce(steps.command NOT IN ${sqlList(PREPARING_COMMANDS)}, true) AND NOT n.is_interrupted
      AND NOT coalesce(regexp_matches(steps.raw_command, ${quoted(NO_ROWS_PATTERN)}), false)
      AND coalesce(n.outcome = 'error'
        OR n.outcome = 'success' AND (n.test_outcome = 'failed' OR n.freshness LIKE '%FAILED'
          OR coalesce(n.last_phase IN ${sqlList(EXECUTING_PHASES)}, true)), false)`;

/** A view of one pass over the records, with a row for each node of each command. */
const NODES_VIEW = `CREATE VIEW nodes AS
  WITH known AS (
    SELECT trace_id, parquet_file, unique_id, record_type, body, time_unix_nano AS logged_at,
      severity_number, start_time_unix_nano AS started_at, end_time_unix_nano AS ended_at, attributes AS a,
      CASE WHEN event_type LIKE '%.NodeProcessed' THEN 'processed' WHEN event_type LIKE '%.NodeEvaluated' THEN 'evaluated'
        WHEN event_type LIKE '%.QueryExecuted' THEN 'query'
        WHEN record_type = 'LogRecord' AND severity_number >= 17 THEN 'error' END AS kind,
      CASE WHEN record_type = 'LogRecord' AND attributes.code IN (1404, 8995) THEN 'hard'
        WHEN record_type = 'SpanEnd' AND event_type LIKE '%.QueryExecuted' AND attributes.query_outcome LIKE '%CANCEL%ED'
          AND NOT regexp_matches(coalesce(attributes.json_payload->>'$.query_error_adapter_message', ''),
            'canceling statement due to \\w+ timeout') THEN 'query' END AS interruption
    FROM records
    WHERE unique_id <> '' AND (record_type = 'LogRecord' AND (severity_number >= 17 OR attributes.code IN (1404, 8995))
      OR event_type LIKE '%.NodeProcessed' OR event_type LIKE '%.NodeEvaluated' OR event_type LIKE '%.QueryExecuted')
  ), summed AS (
    SELECT trace_id, parquet_file, unique_id,
      max(a.node_type) AS node_type,
      bool_or(coalesce((a.json_payload->>'$.in_selection')::BOOLEAN, false)) FILTER (WHERE kind = 'processed') AS selected,
      coalesce(
        arg_max(a, ended_at) FILTER (WHERE kind = 'processed' AND record_type = 'SpanEnd'),
        arg_max(a, ended_at) FILTER (WHERE kind = 'evaluated' AND record_type = 'SpanEnd')) AS a,
      max(ended_at) FILTER (WHERE kind = 'processed' AND record_type = 'SpanEnd') AS ended_at,
      min(started_at) FILTER (WHERE kind IN ('processed', 'evaluated')) AS started_at,
      arg_max(started_at, ended_at) FILTER (WHERE kind = 'processed' AND record_type = 'SpanEnd') AS processed_at,
      count(*) FILTER (WHERE kind = 'query' AND record_type = 'SpanEnd') AS query_count,
      coalesce(sum(epoch_ns(ended_at) - epoch_ns(started_at))
        FILTER (WHERE kind = 'query' AND record_type = 'SpanEnd'), 0) / 1e6 AS warehouse_time_ms,
      bool_or(interruption = 'hard') AS is_cut, bool_or(interruption = 'query') AS has_cut_query,
      regexp_replace(arg_min(body, logged_at) FILTER (WHERE kind = 'error'),
        '(^|\\n) *0: <unknown>[^\\n]*(\\n +(\\d+: |at )[^\\n]*)*', '', 'g') AS message
    FROM known GROUP BY ALL HAVING count(*) FILTER (WHERE kind IN ('processed', 'evaluated')) > 0
  ), phases AS (
    SELECT trace_id, parquet_file, unique_id, span_id, min(start_time_unix_nano) AS started_at,
      max(end_time_unix_nano) AS ended_at
    FROM records WHERE event_type LIKE '%.NodeEvaluated' GROUP BY ALL
  ), waits AS (
    SELECT trace_id, parquet_file, nullif(coalesce(unique_id, attributes.json_payload->>'$.unique_id'), '') AS unique_id, parent_span_id,
      start_time_unix_nano AS started_at, end_time_unix_nano AS ended_at
    FROM records WHERE record_type = 'SpanEnd'
      AND (event_type LIKE '%.ThreadPoolWait' OR event_type LIKE '%.ConnectionLimitWait')
  ), cut AS (
    SELECT p.*, greatest(w.started_at, p.started_at) AS wait_at, least(w.ended_at, p.ended_at) AS until
    FROM waits w JOIN phases p ON p.trace_id = w.trace_id AND p.parquet_file = w.parquet_file AND p.span_id = w.parent_span_id
    WHERE w.unique_id IS NULL
    UNION ALL
    SELECT p.*, greatest(w.started_at, p.started_at), least(w.ended_at, p.ended_at)
    FROM waits w JOIN phases p USING (trace_id, parquet_file, unique_id)
  ), waited AS (
    SELECT trace_id, parquet_file, unique_id, nullif(sum(epoch_ns(until) - epoch_ns(wait_at)) // 1000000, 0)::BIGINT AS waited_ms
    FROM (
      SELECT trace_id, parquet_file, unique_id, until, greatest(wait_at, max(until) OVER (
        PARTITION BY trace_id, parquet_file, span_id ORDER BY wait_at, until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )) AS wait_at
      FROM cut WHERE until > wait_at
    ) WHERE until > wait_at GROUP BY ALL
  ), read AS (
    SELECT *,
      CASE a.node_outcome WHEN 'NODE_OUTCOME_SUCCESS' THEN 'success' WHEN 'NODE_OUTCOME_ERROR' THEN 'error'
        WHEN 'NODE_OUTCOME_SKIPPED' THEN 'skipped' WHEN 'NODE_OUTCOME_CANCELED' THEN 'canceled'
        WHEN 'NODE_OUTCOME_UNSPECIFIED' THEN NULL
        ELSE left(regexp_replace(regexp_replace(lower(a.node_outcome), '^node_outcome_', ''), '[^a-z0-9]+', '_', 'g'), 40)
      END AS outcome,
      a.json_payload->'$.node_outcome_detail.NodeTestDetail' AS test,
      a.json_payload->>'$.node_outcome_detail.NodeFreshnessOutcome.node_freshness_outcome' AS freshness,
      coalesce(selected, true) AS is_selected,
      coalesce(bool_or(selected) OVER (PARTITION BY trace_id, parquet_file), false) AS has_selection
    FROM summed
  ), worded AS (
    SELECT *,
      CASE WHEN outcome = 'skipped' THEN
        replace(lower(nullif(replace(a.node_skip_reason, 'NODE_SKIP_REASON_', ''), 'UNSPECIFIED')), 'no_op', 'noop')
      END AS skip_reason,
      CASE WHEN outcome = 'success' AND test IS NOT NULL THEN
        coalesce(lower(replace(test->>'$.test_outcome', 'TEST_OUTCOME_', '')), 'passed') END AS test_outcome,
      nullif(replace(a.phase, 'EXECUTION_PHASE_', ''), 'UNSPECIFIED') AS last_phase,
      coalesce(is_cut, false) OR coalesce(has_cut_query, false)
        AND NOT coalesce(a.phase = 'EXECUTION_PHASE_RUN' AND outcome = 'success', false) AS is_interrupted
    FROM read
  )
  SELECT steps.run_id, steps.job, steps.environment, steps.project, n.trace_id, steps.invocation_id,
    steps.command_index, steps.command, n.unique_id, n.a.name AS name,
    lower(replace(n.node_type, 'NODE_TYPE_', '')) AS node_type,
    lower(replace(n.a.materialization, 'NODE_MATERIALIZATION_', '')) AS materialization,
    n.a."database" AS "database", n.a."schema" AS "schema", n.a.identifier AS identifier, n.a."group" AS "group",
    n.a.relative_path AS relative_path, n.outcome, n.skip_reason,
    n.a.json_payload->>'$.node_outcome_detail.NodeSkipUpstreamDetail.upstream_unique_id' AS skip_upstream,
    n.test_outcome, (n.test->>'$.failing_rows')::BIGINT AS failing_rows,
    CASE WHEN n.ended_at IS NULL THEN NULL ELSE CASE outcome WHEN 'success' THEN
        CASE test_outcome WHEN 'passed' THEN 'pass' WHEN 'warned' THEN 'warn' WHEN 'failed' THEN 'fail' ELSE 'success' END
      WHEN 'error' THEN 'error'
      WHEN 'skipped' THEN CASE skip_reason WHEN 'upstream' THEN 'skipped' END
    END END AS previous_status,
    n.started_at, n.ended_at,
    CASE WHEN n.ended_at IS NOT NULL THEN n.a.duration_ms::BIGINT END AS duration_ms,
    greatest(CASE WHEN n.ended_at IS NOT NULL THEN (n.a.json_payload->>'$.idle_time_ms')::BIGINT END, waited_ms) AS idle_time_ms,
    (epoch_ns(n.ended_at) - epoch_ns(n.processed_at)) / 1e6 AS lifetime_ms, n.warehouse_time_ms, n.query_count,
    CASE WHEN n.ended_at IS NOT NULL THEN n.a.rows_affected::BIGINT END AS rows_affected, n.message,
    ${IS_EXECUTED} AS is_executed
  FROM worded n LEFT JOIN steps USING (trace_id, parquet_file)
    LEFT JOIN waited USING (trace_id, parquet_file, unique_id)
  WHERE n.is_selected OR n.outcome = 'error' OR NOT n.has_selection`;

const TESTS_VIEW = `CREATE VIEW tests AS
  SELECT *, coalesce(test_outcome, outcome) AS result FROM nodes WHERE node_type IN ('test', 'unit_test')`;

const QUERIES_VIEW = `CREATE VIEW queries AS
  SELECT steps.run_id, steps.job, steps.environment, steps.project, q.trace_id, steps.invocation_id, steps.command_index,
    steps.command, q.unique_id, lower(replace(q.attributes.phase, 'EXECUTION_PHASE_', '')) AS phase,
    q.attributes.adapter_type AS adapter_type, q.attributes.query_id AS query_id,
    lower(replace(q.attributes.query_outcome, 'QUERY_OUTCOME_', '')) AS outcome,
    q.attributes.query_error_vendor_code AS vendor_code, q.status_message AS error_message,
    q.start_time_unix_nano AS started_at, q.end_time_unix_nano AS ended_at,
    (epoch_ns(q.end_time_unix_nano) - epoch_ns(q.start_time_unix_nano)) / 1e6 AS duration_ms,
    q.attributes.json_payload->>'$.sql' AS sql, q.attributes.json_payload->>'$.query_description' AS description
  FROM records q LEFT JOIN steps USING (trace_id, parquet_file)
  WHERE q.record_type = 'SpanEnd' AND q.event_type LIKE '%.QueryExecuted'`;

/** The columns of the runs' Parquet files as DuckDB reads them (the engine's layout), for the views of a data folder without files. */
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
