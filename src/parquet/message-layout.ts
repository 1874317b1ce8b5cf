import type { JsonValue } from '../record/json.js';
import type { AttributeColumn } from './schema.js';

/** A field of a message that has a column. */
interface ColumnField {
  readonly field: string;
  readonly column: AttributeColumn;
  /** What the column holds when the field is left out in JSON; without one (an optional field) it is null then. */
  readonly zero?: string | number;
}

/** A field of a message that is kept in `json_payload`. */
interface PayloadField {
  readonly field: string;
  /** What the payload holds when the field is left out in JSON; without one the key is left out as well. */
  readonly zero?: JsonValue;
  /** A 64-bit integer: a string in JSONL, a number in the payload. */
  readonly isUint64?: boolean;
}

/** Where the fields of one message go. */
export interface MessageLayout {
  readonly columns: readonly ColumnField[];
  /** In the payload's order. A field named in no list follows them. */
  readonly payload: readonly PayloadField[];
  /** `always`: the payload is written even when it is `{}`. `any`: it is null when no field of it is set. */
  readonly payloadIs: 'always' | 'any';
  /** Names of the fields that are in one of the lists. */
  readonly fields: ReadonlySet<string>;
  /** The message's field of type `map<string, DebugValue>` that is the payload itself. */
  readonly payloadMap?: string;
  /** A column that holds the same text for every message of this type. */
  readonly constant?: { readonly column: AttributeColumn; readonly text: string };
}

const PACKAGE = 'v1.public.events.fusion.';

/** The oneof whose member is wrapped in the payload: `{"node_outcome_detail":{"NodeTestDetail":{…}}}`. */
export const ONEOF_FIELD = 'node_outcome_detail';

/** Members of the oneof, by their field name; in the payload they bear the name in CamelCase. */
export const ONEOF_MEMBERS: ReadonlyMap<string, string> = new Map([
  ['node_cache_detail', 'NodeCacheDetail'],
  ['node_test_detail', 'NodeTestDetail'],
  ['node_freshness_outcome', 'NodeFreshnessOutcome'],
  ['node_skip_upstream_detail', 'NodeSkipUpstreamDetail'],
  ['node_evaluation_detail', 'NodeEvaluationDetail'],
]);

const PHASE = zero('phase', 'EXECUTION_PHASE_UNSPECIFIED');
const WHOLE = message([], [], 'always');
const NODE = [
  zero('name', ''),
  ...optional('database', 'schema', 'identifier'),
  zero('unique_id', ''),
  ...optional('materialization', 'custom_materialization'),
  zero('node_type', 'NODE_TYPE_UNSPECIFIED'),
  zero('node_outcome', 'NODE_OUTCOME_UNSPECIFIED'),
  ...optional('node_error_type', 'node_cancel_reason', 'node_skip_reason', 'sao_enabled'),
  zero('relative_path', ''),
  renamed('defined_at_line', 'code_line'),
  renamed('defined_at_col', 'code_column'),
  { ...renamed('node_checksum', 'content_hash'), zero: '' },
  ...optional('rows_affected'),
];

/**
 * The layout of every message that the engine writes with columns of its own, by full name. An event type that is not
 * here goes into `json_payload` as it is. Source: the engine's public code and `parquet-layout.json`.
 */
export const MESSAGE_LAYOUTS: ReadonlyMap<string, MessageLayout> = new Map(
  Object.entries({
    'artifact.ArtifactWritten': message(
      [zero('relative_path', ''), zero('artifact_type', 'ARTIFACT_TYPE_UNSPECIFIED')],
      [],
      'any',
    ),
    'asset.AssetParsed': message(
      [PHASE, zero('name', ''), ...optional('unique_id'), zero('package_name', ''), zero('relative_path', '')],
      [{ field: 'display_path', zero: '' }],
      'always',
    ),
    'deps.DepsAddPackage': message(
      [zero('dbt_core_event_code', ''), zero('package_name', '')],
      [{ field: 'package_type', zero: 'PACKAGE_TYPE_UNSPECIFIED' }, { field: 'package_version' }],
      'always',
    ),
    'deps.DepsPackageInstalled': message(
      [zero('dbt_core_event_code', ''), ...optional('package_name')],
      [
        { field: 'package_type', zero: 'PACKAGE_TYPE_UNSPECIFIED' },
        { field: 'package_version' },
        { field: 'package_url_or_path' },
      ],
      'always',
    ),
    'deps.DepsAllPackagesInstalled': WHOLE,
    'dev.CallTrace': {
      ...message([{ ...renamed('name', 'dev_name'), zero: '' }, ...optional('file', 'line')], [], 'always'),
      payloadMap: 'extra',
    },
    'dev.Unknown': message(
      [{ ...renamed('name', 'dev_name'), zero: '' }, zero('file', ''), zero('line', 0)],
      [],
      'any',
    ),
    'generic.GenericOpExecuted': WHOLE,
    'generic.GenericOpItemProcessed': WHOLE,
    'hook.HookProcessed': message(
      [zero('package_name', ''), ...optional('name'), zero('unique_id', ''), zero('dbt_core_event_code', ''), PHASE],
      [
        { field: 'hook_type', zero: 'HOOK_TYPE_UNSPECIFIED' },
        { field: 'hook_index', zero: 0 },
        { field: 'hook_outcome', zero: 'HOOK_OUTCOME_UNSPECIFIED' },
      ],
      'always',
    ),
    'invocation.Invocation': WHOLE,
    'log.CompiledCode': message(
      [
        zero('unique_id', ''),
        { ...renamed('node_name', 'name'), zero: '' },
        zero('relative_path', ''),
        { ...renamed('sql', 'content'), zero: '' },
      ],
      [],
      'any',
    ),
    'log.CompiledCodeInline': message([{ ...renamed('sql', 'content'), zero: '' }], [], 'any'),
    'log.ListItemOutput': {
      ...message(
        [zero('output_format', 'LIST_OUTPUT_FORMAT_UNSPECIFIED'), zero('content', ''), ...optional('unique_id')],
        [],
        'any',
      ),
      constant: { column: 'dbt_core_event_code', text: 'Z052' },
    },
    'log.LogMessage': message(
      [
        ...optional('code', 'code_name', 'dbt_core_event_code'),
        zero('original_severity_number', 0),
        zero('original_severity_text', ''),
        ...optional('unique_id', 'phase', 'file', 'line', 'package_name', 'relative_path', 'code_line', 'code_column'),
      ],
      [{ field: 'expanded_relative_path' }, { field: 'expanded_line' }, { field: 'expanded_column' }],
      'any',
    ),
    'log.UserLogMessage': message(
      [
        zero('dbt_core_event_code', ''),
        ...optional('unique_id', 'phase', 'package_name', 'relative_path'),
        renamed('line', 'code_line'),
        renamed('column', 'code_column'),
      ],
      [{ field: 'is_print', zero: false }],
      'always',
    ),
    'log.ProgressMessage': message(
      optional('dbt_core_event_code', 'unique_id', 'phase', 'file', 'line'),
      [{ field: 'action', zero: '' }, { field: 'target', zero: '' }, { field: 'description' }],
      'always',
    ),
    'log.StateModifiedDiff': message(
      optional('unique_id'),
      [
        { field: 'node_type_or_category', zero: '' },
        { field: 'check', zero: '' },
        { field: 'self_value' },
        { field: 'other_value' },
      ],
      'always',
    ),
    'log.ShowDataOutput': message(
      [
        zero('dbt_core_event_code', ''),
        { ...renamed('node_name', 'name'), zero: '' },
        ...optional('unique_id'),
        zero('output_format', 'SHOW_DATA_OUTPUT_FORMAT_UNSPECIFIED'),
        zero('content', ''),
      ],
      [
        { field: 'is_inline', zero: false },
        { field: 'columns', zero: [] },
      ],
      'always',
    ),
    'log.ShowResult': message(
      [
        { ...renamed('result_type', 'name'), zero: '' },
        ...optional('unique_id'),
        zero('output_format', 'SHOW_RESULT_OUTPUT_FORMAT_UNSPECIFIED'),
        zero('content', ''),
      ],
      [{ field: 'title', zero: '' }],
      'always',
    ),
    'node.NodeEvaluated': message(
      [PHASE, ...NODE, ...optional('dbt_core_event_code')],
      [{ field: ONEOF_FIELD }, { field: 'idle_time_ms', isUint64: true }, { field: 'state_decision_id' }],
      'any',
    ),
    'node.NodeProcessed': message(
      [
        { ...renamed('last_phase', 'phase'), zero: 'EXECUTION_PHASE_UNSPECIFIED' },
        ...NODE,
        zero('dbt_core_event_code', ''),
        ...optional('duration_ms', 'group'),
      ],
      [
        { field: 'in_selection', zero: false },
        { field: ONEOF_FIELD },
        { field: 'idle_time_ms', isUint64: true },
        { field: 'source_name' },
      ],
      'always',
    ),
    'onboarding.OnboardingScreenShown': WHOLE,
    'phase.PhaseExecuted': message(
      [PHASE],
      [
        { field: 'node_count_total', isUint64: true },
        { field: 'node_count_skipped', isUint64: true },
        { field: 'node_count_error', isUint64: true },
      ],
      'always',
    ),
    'process.Process': WHOLE,
    'query.QueryExecuted': message(
      [
        { ...renamed('sql_hash', 'content_hash'), zero: '' },
        zero('adapter_type', ''),
        ...optional('query_id', 'unique_id'),
        zero('query_outcome', 'QUERY_OUTCOME_UNSPECIFIED'),
        ...optional('phase', 'query_error_vendor_code'),
        zero('dbt_core_event_code', ''),
      ],
      [{ field: 'sql', zero: '' }, { field: 'query_description' }, { field: 'query_error_adapter_message' }],
      'always',
    ),
    'query.ConnectionLimitWait': WHOLE,
    'query.AdapterConnectionOpen': WHOLE,
    'query.AdapterConnectionClose': WHOLE,
    'update.PackageUpdate': WHOLE,
  } satisfies Record<string, MessageLayout>).map(([name, layout]) => [PACKAGE + name, layout]),
);

function message(
  columns: readonly ColumnField[],
  payload: readonly PayloadField[],
  payloadIs: 'always' | 'any',
): MessageLayout {
  const fields = new Set([...columns, ...payload].map(({ field }) => field));
  return { columns, payload, payloadIs, fields };
}

function optional(...names: readonly AttributeColumn[]): ColumnField[] {
  return names.map((name) => ({ field: name, column: name }));
}

function zero(name: AttributeColumn, value: string | number): ColumnField {
  return { field: name, column: name, zero: value };
}

function renamed(field: string, column: AttributeColumn): ColumnField {
  return { field, column };
}

/** The fields of a message in the order in which the engine writes them into `json_payload`. */
export interface KeyOrder {
  readonly [field: string]: KeyOrder | null;
}

// JSONL sorts keys; in `json_payload` they stand as the message declares them. `null`: a value without an order of its own.
const PROCESS: KeyOrder = fields('package', 'version', 'host_os', 'host_arch');

const EVAL_ARGS: KeyOrder = {
  ...fields('command', 'profiles_dir', 'packages_install_path', 'target', 'profile', 'vars', 'limit', 'num_threads'),
  ...fields('selector', 'select', 'exclude', 'indirect_selection', 'output_keys', 'resource_types'),
  ...fields('exclude_resource_types', 'debug', 'log_format', 'log_level', 'log_path', 'target_path', 'project_dir'),
  ...fields('quiet', 'write_json', 'write_catalog', 'manage_state', 'warn_error'),
  warn_error_options: fields('error', 'warn', 'silence'),
};

/** Orders by full message name, for messages that are in `json_payload` whole. */
export const MESSAGE_KEY_ORDERS: ReadonlyMap<string, KeyOrder> = new Map<string, KeyOrder>([
  [
    'v1.public.events.fusion.invocation.Invocation',
    {
      ...fields('invocation_id', 'raw_command'),
      eval_args: EVAL_ARGS,
      process_info: PROCESS,
      metrics: fields('total_errors', 'total_warnings', 'autofix_suggestions', 'node_type_counts', 'status_counts'),
      parent_span_id: null,
    },
  ],
  ['v1.public.events.fusion.process.Process', PROCESS],
  ['v1.public.events.fusion.generic.GenericOpExecuted', fields('operation_id', 'display_action', 'item_count_total')],
  [
    'v1.public.events.fusion.generic.GenericOpItemProcessed',
    fields('operation_id', 'display_in_progress_action', 'display_on_success_action', 'target'),
  ],
  ['v1.public.events.fusion.query.ConnectionLimitWait', fields('active_nodes', 'active_connections')],
  ['v1.public.events.fusion.query.AdapterConnectionOpen', fields('adapter_type', 'adapter_backend')],
  ['v1.public.events.fusion.update.PackageUpdate', fields('version', 'package', 'exe_path')],
  ['v1.events.fusion.group.Groups', { groups: { name: null, owner: fields('name', 'emails') } }],
]);

/** Orders of the members of `node_outcome_detail`, by field name; members with one field need none. */
export const ONEOF_KEY_ORDERS: ReadonlyMap<string, KeyOrder> = new Map<string, KeyOrder>([
  ['node_cache_detail', fields('node_cache_reason', 'build_after_seconds', 'last_updated_seconds')],
  [
    'node_test_detail',
    fields('test_outcome', 'failing_rows', 'diff_table', 'store_failures', 'statically_checked', 'batch_unique_id'),
  ],
  ['node_freshness_outcome', fields('node_freshness_outcome', 'age_seconds')],
]);

function fields(...names: readonly string[]): KeyOrder {
  return Object.fromEntries(names.map((name) => [name, null]));
}
