import { isJsonObject, type JsonObject, type JsonValue } from '../record/json.js';

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

/** The object with its keys, and those of the objects in it, sorted as JSONL has them. */
export function sortedKeys(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortedValue(value[key] ?? null)]),
  );
}

function sortedValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sortedValue);
  return isJsonObject(value) ? sortedKeys(value) : value;
}

function fields(...names: readonly string[]): KeyOrder {
  return Object.fromEntries(names.map((name) => [name, null]));
}
