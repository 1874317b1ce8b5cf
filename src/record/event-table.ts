import type { JsonValue } from './attributes.js';
import { DEBUG, INFO, type Severity, TRACE } from './severity.js';

/** The package of all the engine's public events. A newer engine may have more of them than the schema. */
export const EVENT_TYPE_PREFIX = 'v1.public.events.fusion.';

/** How a field of a message is spelt in the engine's JSON. `nested` is a message, a map or a list. */
export type FieldKind = 'text' | 'int64' | 'int32' | 'bool' | 'double' | 'enum' | 'enumNumber' | 'nested';

/**
 * What redaction does with an attribute's text.
 * `keep`: shows it, as it is structural. `name`: shows it if it looks like a name. `sql`: treats it as a statement. `command`: as a command line. `diffTable`: as a unit test's differences. `text`:
 * as a message that may quote SQL. `ownWords`: as a text of an unknown event, which no vocabulary fits. `deny`: never shows it.
 */
export type AttributePolicy = 'keep' | 'name' | 'sql' | 'command' | 'diffTable' | 'text' | 'ownWords' | 'deny';

/** A field of a message and how it is handled. */
export interface FieldRow {
  readonly kind: FieldKind;
  /** How redaction treats its texts. Default: `keep` for an enum, else `text`. A name has the same policy in all events. */
  readonly policy?: AttributePolicy;
  /** The type of the message in it, without the prefix. Its fields are exported as `<field>.<name>`, or under their own names if they are `lifted`. */
  readonly message?: string;
  /** Values of lifted fields that proto3 omits from JSON because they are zero, though they have a meaning. */
  readonly lifted?: Readonly<Record<string, string | number>>;
  /** The type of a map's entries, if exports need it. */
  readonly entries?: 'int64';
  /** Its column in Parquet. */
  readonly column?: string;
  /** Whether `json_payload` has it, in the order of the rows. */
  readonly isInPayload?: true;
  /** Whether it is a member of `node_outcome_detail`, under which the payload has it. */
  readonly isOutcomeDetail?: true;
  /** Its value in Parquet if JSON omits it. Default (for an optional field): nothing. */
  readonly zero?: JsonValue;
  /**
   * Whether the start of a span has it. `none`: only the end has it. `known`: the start has it if it is this JSON. `value`: the start has this JSON instead. Default: the start has what the end has.
   */
  readonly start?: 'none' | { readonly known: string } | { readonly value: string };
  /** Values for which the start of a span has all attributes of the end. */
  readonly wholeWith?: readonly string[];
}

type Fields = Readonly<Record<string, FieldRow>>;

/** Describes the spans of an event type. */
export interface SpanRow {
  /** The names that the engine gives such spans: prefixes, none of which is a prefix of another, or patterns. The first row that matches wins. */
  readonly names: readonly (string | RegExp)[];
  /** The severity that the engine writes, which OTLP does not carry. `spanSeverity` treats two types whose severity depends on more. */
  readonly severity: Severity;
  /** `true` if names only have names of the project's things; else a pattern for what differs from run to run, and its replacement. */
  readonly stableName?: true | readonly [RegExp, string];
}

/** An event type. */
export interface EventRow {
  /** Omitted for log records. */
  readonly span?: SpanRow;
  /**
   * Its representation in Parquet; omitted if unknown. An `always` payload is written even if it is `{}`; an `any` payload is null if none of its fields is set. `map` names the field whose entries
   * are the payload; `constant` is a column with the same text in every row.
   */
  readonly parquet?: {
    readonly payload: 'always' | 'any';
    readonly map?: string;
    readonly constant?: { readonly column: string; readonly text: string };
  };
  /** The fields of the message: those with a column or in the payload first, in Parquet's order; the others in the order of their declaration. */
  readonly fields: Fields;
}

/** Fields that spans of a node and of its phases share: its identity and outcome. */
const NODE_IDENTITY = {
  name: { kind: 'text', policy: 'keep', column: 'name', zero: '' },
  database: { kind: 'text', policy: 'keep', column: 'database' },
  schema: { kind: 'text', policy: 'keep', column: 'schema' },
  identifier: { kind: 'text', policy: 'keep', column: 'identifier' },
  unique_id: { kind: 'text', policy: 'keep', column: 'unique_id', zero: '' },
  materialization: { kind: 'enum', column: 'materialization' },
  custom_materialization: { kind: 'text', policy: 'keep', column: 'custom_materialization' },
  node_type: { kind: 'enum', column: 'node_type', zero: 'NODE_TYPE_UNSPECIFIED' },
  node_outcome: { kind: 'enum', column: 'node_outcome', zero: 'NODE_OUTCOME_UNSPECIFIED', start: 'none' },
  node_error_type: { kind: 'enum', column: 'node_error_type', start: 'none' },
  node_cancel_reason: { kind: 'enum', column: 'node_cancel_reason', start: 'none' },
} as const satisfies Fields;

/** Where a node is defined, its checksum and the rows affected. */
const NODE_LOCATION = {
  sao_enabled: { kind: 'bool', column: 'sao_enabled' },
  relative_path: { kind: 'text', policy: 'keep', column: 'relative_path', zero: '' },
  defined_at_line: { kind: 'int32', column: 'code_line' },
  defined_at_col: { kind: 'int32', column: 'code_column' },
  node_checksum: { kind: 'text', policy: 'keep', column: 'content_hash', zero: '' },
  rows_affected: { kind: 'int64', column: 'rows_affected', start: 'none' },
} as const satisfies Fields;

/** The members of the oneof `node_outcome_detail`. */
const NODE_DETAILS = {
  node_cache_detail: {
    kind: 'nested',
    message: 'node.NodeCacheDetail',
    lifted: { node_cache_reason: 'NODE_CACHE_REASON_NO_CHANGES' },
    isOutcomeDetail: true,
    start: 'none',
  },
  node_test_detail: {
    kind: 'nested',
    message: 'node.TestEvaluationDetail',
    lifted: { test_outcome: 'TEST_OUTCOME_PASSED', failing_rows: 0 },
    isOutcomeDetail: true,
    start: 'none',
  },
  node_freshness_outcome: {
    kind: 'nested',
    policy: 'keep',
    message: 'node.SourceFreshnessDetail',
    lifted: { node_freshness_outcome: 'SOURCE_FRESHNESS_OUTCOME_OUTCOME_PASSED' },
    isOutcomeDetail: true,
    start: 'none',
  },
  node_skip_upstream_detail: {
    kind: 'nested',
    message: 'node.NodeSkipUpstreamDetail',
    isOutcomeDetail: true,
    start: 'none',
  },
  node_evaluation_detail: {
    kind: 'nested',
    message: 'node.NodeEvaluationDetail',
    lifted: {},
    isOutcomeDetail: true,
    start: 'none',
  },
} as const satisfies Fields;

/**
 * All public events of the engine: what decoding, exports, redaction and Parquet know of each. To add an event type, add a row. A test compares the table with the schema in `proto/`, which decoding
 * also uses for the names of enum values. Sources: files that the engine wrote, and its public code.
 */
const ROWS: Readonly<Record<string, EventRow>> = {
  'node.NodeEvaluated': {
    span: { names: ['Node evaluated ('], severity: DEBUG, stableName: true },
    parquet: { payload: 'any' },
    fields: {
      phase: { kind: 'enum', column: 'phase', zero: 'EXECUTION_PHASE_UNSPECIFIED' },
      ...NODE_IDENTITY,
      node_skip_reason: {
        kind: 'enum',
        column: 'node_skip_reason',
        start: 'none',
        wholeWith: ['NODE_SKIP_REASON_UPSTREAM', 'NODE_SKIP_REASON_PHASE_SKIPPED'],
      },
      ...NODE_LOCATION,
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code' },
      ...NODE_DETAILS,
      idle_time_ms: { kind: 'int64', isInPayload: true, start: 'none' },
      state_decision_id: { kind: 'text', policy: 'keep', isInPayload: true, start: 'none' },
    },
  },
  'node.NodeProcessed': {
    span: { names: ['Node processed ('], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      last_phase: {
        kind: 'enum',
        column: 'phase',
        zero: 'EXECUTION_PHASE_UNSPECIFIED',
        start: { known: '"EXECUTION_PHASE_FRESHNESS_ANALYSIS"' },
      },
      ...NODE_IDENTITY,
      node_skip_reason: { kind: 'enum', column: 'node_skip_reason', start: 'none' },
      ...NODE_LOCATION,
      dbt_core_event_code: {
        kind: 'text',
        policy: 'keep',
        column: 'dbt_core_event_code',
        zero: '',
        start: { value: '"Q024"' },
      },
      duration_ms: { kind: 'int64', column: 'duration_ms', start: 'none' },
      group: { kind: 'text', policy: 'keep', column: 'group' },
      in_selection: { kind: 'bool', isInPayload: true, zero: false },
      ...NODE_DETAILS,
      idle_time_ms: { kind: 'int64', isInPayload: true, start: 'none' },
      source_name: { kind: 'text', policy: 'keep', isInPayload: true },
      node_index: { kind: 'int32' },
      node_count_total: { kind: 'int32' },
    },
  },
  'query.QueryExecuted': {
    span: { names: ['Query executed (', /^Query executed$/], severity: DEBUG, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      sql_hash: { kind: 'text', policy: 'keep', column: 'content_hash', zero: '' },
      adapter_type: { kind: 'text', policy: 'keep', column: 'adapter_type', zero: '' },
      query_id: { kind: 'text', policy: 'keep', column: 'query_id', start: 'none' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      query_outcome: { kind: 'enum', column: 'query_outcome', zero: 'QUERY_OUTCOME_UNSPECIFIED', start: 'none' },
      phase: { kind: 'enum', column: 'phase' },
      query_error_vendor_code: { kind: 'int32', column: 'query_error_vendor_code', start: 'none' },
      dbt_core_event_code: {
        kind: 'text',
        policy: 'keep',
        column: 'dbt_core_event_code',
        zero: '',
        start: { value: '"E016"' },
      },
      sql: { kind: 'text', policy: 'sql', isInPayload: true, zero: '' },
      query_description: { kind: 'text', policy: 'text', isInPayload: true },
      query_error_adapter_message: { kind: 'text', policy: 'text', isInPayload: true, start: 'none' },
    },
  },
  'asset.AssetParsed': {
    span: { names: ['Asset parsed ('], severity: DEBUG, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      phase: { kind: 'enum', column: 'phase', zero: 'EXECUTION_PHASE_UNSPECIFIED' },
      name: { kind: 'text', policy: 'keep', column: 'name', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      package_name: { kind: 'text', policy: 'keep', column: 'package_name', zero: '' },
      relative_path: { kind: 'text', policy: 'keep', column: 'relative_path', zero: '' },
      display_path: { kind: 'text', policy: 'keep', isInPayload: true, zero: '' },
    },
  },
  'dev.CallTrace': {
    span: { names: ['Dev trace: '], severity: TRACE, stableName: [/ \([^()]*:\d+\)$/, ''] },
    parquet: { payload: 'always', map: 'extra' },
    fields: {
      name: { kind: 'text', policy: 'keep', column: 'dev_name', zero: '' },
      file: { kind: 'text', policy: 'keep', column: 'file' },
      line: { kind: 'int32', column: 'line' },
      extra: { kind: 'nested' },
    },
  },
  'phase.PhaseExecuted': {
    span: { names: ['Phase: '], severity: INFO, stableName: [/ \(nodes: \d+\)$/, ''] },
    parquet: { payload: 'always' },
    fields: {
      phase: { kind: 'enum', column: 'phase', zero: 'EXECUTION_PHASE_UNSPECIFIED' },
      node_count_total: { kind: 'int64', isInPayload: true },
      node_count_skipped: { kind: 'int64', isInPayload: true, start: { value: '"0"' } },
      node_count_error: { kind: 'int64', isInPayload: true, start: { value: '"0"' } },
    },
  },
  'hook.HookProcessed': {
    span: { names: ['Hook processed ('], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      package_name: { kind: 'text', policy: 'keep', column: 'package_name', zero: '' },
      name: { kind: 'text', policy: 'keep', column: 'name' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id', zero: '' },
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code', zero: '' },
      phase: { kind: 'enum', column: 'phase', zero: 'EXECUTION_PHASE_UNSPECIFIED' },
      hook_type: { kind: 'enum', isInPayload: true, zero: 'HOOK_TYPE_UNSPECIFIED' },
      hook_index: { kind: 'int32', isInPayload: true, zero: 0 },
      hook_outcome: { kind: 'enum', isInPayload: true, zero: 'HOOK_OUTCOME_UNSPECIFIED', start: 'none' },
    },
  },
  'artifact.ArtifactWritten': {
    span: { names: ['Artifact: '], severity: INFO, stableName: true },
    parquet: { payload: 'any' },
    fields: {
      relative_path: { kind: 'text', policy: 'keep', column: 'relative_path', zero: '' },
      artifact_type: { kind: 'enum', column: 'artifact_type', zero: 'ARTIFACT_TYPE_UNSPECIFIED' },
    },
  },
  'generic.GenericOpExecuted': {
    span: { names: ['GenericOp: '], severity: INFO, stableName: [/ \(\d+ items?\)$/, ''] },
    parquet: { payload: 'always' },
    fields: {
      operation_id: { kind: 'text', policy: 'keep' },
      display_action: { kind: 'text', policy: 'name' },
      item_count_total: { kind: 'int64' },
    },
  },
  'generic.GenericOpItemProcessed': {
    span: { names: ['GenericOpItem: '], severity: DEBUG, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      operation_id: { kind: 'text', policy: 'keep' },
      display_in_progress_action: { kind: 'text', policy: 'name' },
      display_on_success_action: { kind: 'text', policy: 'name' },
      target: { kind: 'text', policy: 'name' },
    },
  },
  'query.ConnectionLimitWait': {
    span: { names: ['Connection limit wait'], severity: DEBUG, stableName: [/(?: \(\d+ active \w+\))+$/, ''] },
    parquet: { payload: 'always' },
    fields: {
      active_nodes: { kind: 'int32' },
      active_connections: { kind: 'int32' },
    },
  },
  'node.MicrobatchEvaluated': {
    span: { names: [], severity: INFO },
    fields: {
      unique_id: { kind: 'text', policy: 'keep' },
      schema: { kind: 'text', policy: 'keep' },
      identifier: { kind: 'text', policy: 'keep' },
      batch_id: { kind: 'text', policy: 'keep' },
      batch_size: { kind: 'enum' },
      batch_index: { kind: 'int32' },
      total_batches: { kind: 'int32' },
      event_time_start: { kind: 'text', policy: 'keep' },
      event_time_end: { kind: 'text', policy: 'keep' },
      node_outcome: { kind: 'enum', start: 'none' },
      idle_time_ms: { kind: 'int64', start: 'none' },
      dbt_core_event_code: { kind: 'text', policy: 'keep' },
    },
  },
  'process.ThreadPoolWait': {
    span: { names: ['Thread pool wait'], severity: DEBUG, stableName: true },
    fields: {
      unique_id: { kind: 'text', policy: 'keep' },
      batch_id: { kind: 'text', policy: 'keep' },
    },
  },
  'deps.DepsAddPackage': {
    span: { names: [/^Package ".*" added$/], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code', zero: '' },
      package_name: { kind: 'text', policy: 'keep', column: 'package_name', zero: '' },
      package_type: { kind: 'enum', isInPayload: true, zero: 'PACKAGE_TYPE_UNSPECIFIED' },
      package_version: { kind: 'text', policy: 'keep', isInPayload: true },
    },
  },
  'deps.DepsPackageInstalled': {
    span: { names: [/^Package ".*" installed$/], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      dbt_core_event_code: {
        kind: 'text',
        policy: 'keep',
        column: 'dbt_core_event_code',
        zero: '',
        start: { value: '"M014"' },
      },
      package_name: { kind: 'text', policy: 'keep', column: 'package_name' },
      package_type: { kind: 'enum', isInPayload: true, zero: 'PACKAGE_TYPE_UNSPECIFIED' },
      package_version: { kind: 'text', policy: 'keep', isInPayload: true },
      package_url_or_path: { kind: 'text', policy: 'text', isInPayload: true },
    },
  },
  'deps.DepsAllPackagesInstalled': {
    span: {
      names: [/^Installing \d+ package\(s\)$/],
      severity: INFO,
      stableName: [/^Installing \d+ package(?:s|\(s\))?$/, 'Installing packages'],
    },
    parquet: { payload: 'always' },
    fields: {
      package_count: { kind: 'int64' },
    },
  },
  'update.PackageUpdate': {
    span: { names: [/^Update: .* -> /], severity: INFO, stableName: [/ -> .*$/, ''] },
    parquet: { payload: 'always' },
    fields: {
      version: { kind: 'text', policy: 'keep' },
      package: { kind: 'text', policy: 'keep' },
      exe_path: { kind: 'text', policy: 'keep' },
    },
  },
  'invocation.Invocation': {
    span: { names: [/^\S+ invocation \([0-9a-fA-F-]{32,36}\)$/], severity: INFO },
    parquet: { payload: 'always' },
    fields: {
      invocation_id: { kind: 'text', policy: 'keep' },
      raw_command: { kind: 'text', policy: 'command' },
      eval_args: { kind: 'nested', message: 'invocation.InvocationEvalArgs' },
      process_info: { kind: 'nested', message: 'process.Process' },
      metrics: { kind: 'nested', message: 'invocation.InvocationMetrics', start: 'none' },
      parent_span_id: { kind: 'int64', policy: 'keep' },
    },
  },
  'process.Process': {
    span: { names: [/^\S+ process \(/], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      package: { kind: 'text', policy: 'keep' },
      version: { kind: 'text', policy: 'keep' },
      host_os: { kind: 'text', policy: 'keep' },
      host_arch: { kind: 'text', policy: 'keep' },
    },
  },
  'onboarding.OnboardingScreenShown': {
    span: { names: ['Onboarding screen shown: '], severity: INFO, stableName: true },
    parquet: { payload: 'always' },
    fields: {
      screen: { kind: 'enum' },
    },
  },
  'dev.Unknown': {
    span: { names: ['Unknown span: '], severity: TRACE, stableName: [/ \([^()]*:\d+\)$/, ''] },
    parquet: { payload: 'any' },
    fields: {
      name: { kind: 'text', policy: 'keep', column: 'dev_name', zero: '' },
      file: { kind: 'text', policy: 'keep', column: 'file', zero: '' },
      line: { kind: 'int32', column: 'line', zero: 0 },
    },
  },
  'log.LogMessage': {
    parquet: { payload: 'any' },
    fields: {
      code: { kind: 'int32', column: 'code' },
      code_name: { kind: 'text', policy: 'keep', column: 'code_name' },
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code' },
      original_severity_number: { kind: 'enumNumber', column: 'original_severity_number', zero: 0 },
      original_severity_text: { kind: 'text', policy: 'keep', column: 'original_severity_text', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      phase: { kind: 'enum', column: 'phase' },
      file: { kind: 'text', policy: 'keep', column: 'file' },
      line: { kind: 'int32', column: 'line' },
      package_name: { kind: 'text', policy: 'keep', column: 'package_name' },
      relative_path: { kind: 'text', policy: 'keep', column: 'relative_path' },
      code_line: { kind: 'int32', column: 'code_line' },
      code_column: { kind: 'int32', column: 'code_column' },
      expanded_relative_path: { kind: 'text', policy: 'keep', isInPayload: true },
      expanded_line: { kind: 'int32', isInPayload: true },
      expanded_column: { kind: 'int32', isInPayload: true },
    },
  },
  'log.UserLogMessage': {
    parquet: { payload: 'always' },
    fields: {
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      phase: { kind: 'enum', column: 'phase' },
      package_name: { kind: 'text', policy: 'keep', column: 'package_name' },
      relative_path: { kind: 'text', policy: 'keep', column: 'relative_path' },
      line: { kind: 'int32', column: 'code_line' },
      column: { kind: 'int32', column: 'code_column' },
      is_print: { kind: 'bool', isInPayload: true, zero: false },
    },
  },
  'log.ProgressMessage': {
    parquet: { payload: 'always' },
    fields: {
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      phase: { kind: 'enum', column: 'phase' },
      file: { kind: 'text', policy: 'keep', column: 'file' },
      line: { kind: 'int32', column: 'line' },
      action: { kind: 'text', policy: 'name', isInPayload: true, zero: '' },
      target: { kind: 'text', policy: 'name', isInPayload: true, zero: '' },
      description: { kind: 'text', policy: 'text', isInPayload: true },
    },
  },
  'log.CompiledCode': {
    parquet: { payload: 'any' },
    fields: {
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id', zero: '' },
      node_name: { kind: 'text', policy: 'keep', column: 'name', zero: '' },
      relative_path: { kind: 'text', policy: 'keep', column: 'relative_path', zero: '' },
      sql: { kind: 'text', policy: 'sql', column: 'content', zero: '' },
    },
  },
  'log.CompiledCodeInline': {
    parquet: { payload: 'any' },
    fields: {
      sql: { kind: 'text', policy: 'sql', column: 'content', zero: '' },
    },
  },
  'log.ListItemOutput': {
    parquet: { payload: 'any', constant: { column: 'dbt_core_event_code', text: 'Z052' } },
    fields: {
      output_format: { kind: 'enum', column: 'output_format', zero: 'LIST_OUTPUT_FORMAT_UNSPECIFIED' },
      content: { kind: 'text', policy: 'deny', column: 'content', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
    },
  },
  'log.ShowDataOutput': {
    parquet: { payload: 'always' },
    fields: {
      dbt_core_event_code: { kind: 'text', policy: 'keep', column: 'dbt_core_event_code', zero: '' },
      node_name: { kind: 'text', policy: 'keep', column: 'name', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      output_format: { kind: 'enum', column: 'output_format', zero: 'SHOW_DATA_OUTPUT_FORMAT_UNSPECIFIED' },
      content: { kind: 'text', policy: 'deny', column: 'content', zero: '' },
      is_inline: { kind: 'bool', isInPayload: true, zero: false },
      columns: { kind: 'nested', policy: 'keep', isInPayload: true, zero: [] },
    },
  },
  'log.ShowResult': {
    parquet: { payload: 'always' },
    fields: {
      result_type: { kind: 'text', policy: 'name', column: 'name', zero: '' },
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      output_format: { kind: 'enum', column: 'output_format', zero: 'SHOW_RESULT_OUTPUT_FORMAT_UNSPECIFIED' },
      content: { kind: 'text', policy: 'deny', column: 'content', zero: '' },
      title: { kind: 'text', policy: 'text', isInPayload: true, zero: '' },
    },
  },
  'log.StateModifiedDiff': {
    parquet: { payload: 'always' },
    fields: {
      unique_id: { kind: 'text', policy: 'keep', column: 'unique_id' },
      node_type_or_category: { kind: 'text', policy: 'keep', isInPayload: true, zero: '' },
      check: { kind: 'text', policy: 'name', isInPayload: true, zero: '' },
      self_value: { kind: 'text', policy: 'deny', isInPayload: true },
      other_value: { kind: 'text', policy: 'deny', isInPayload: true },
    },
  },
  'query.AdapterConnectionOpen': {
    parquet: { payload: 'always' },
    fields: {
      adapter_type: { kind: 'text', policy: 'keep' },
      adapter_backend: { kind: 'text', policy: 'keep' },
    },
  },
  'query.AdapterConnectionClose': {
    parquet: { payload: 'always' },
    fields: {
      repr: { kind: 'text', policy: 'text' },
    },
  },
  'dev.DebugValue': {
    fields: {
      float64: { kind: 'double' },
      bool: { kind: 'bool' },
      string: { kind: 'text', policy: 'text' },
      bytes: { kind: 'text', policy: 'text' },
    },
  },
};

/** Messages inside of events. */
const PART_ROWS: Readonly<Record<string, { readonly fields: Fields }>> = {
  'invocation.InvocationEvalArgs': {
    fields: {
      command: { kind: 'text', policy: 'keep' },
      profiles_dir: { kind: 'text', policy: 'keep' },
      packages_install_path: { kind: 'text', policy: 'keep' },
      target: { kind: 'text', policy: 'keep' },
      profile: { kind: 'text', policy: 'keep' },
      vars: { kind: 'text', policy: 'deny' },
      limit: { kind: 'int64' },
      num_threads: { kind: 'int64' },
      selector: { kind: 'text', policy: 'keep' },
      select: { kind: 'nested', policy: 'keep' },
      exclude: { kind: 'nested', policy: 'keep' },
      indirect_selection: { kind: 'text', policy: 'keep' },
      output_keys: { kind: 'nested', policy: 'keep' },
      resource_types: { kind: 'nested', policy: 'keep' },
      exclude_resource_types: { kind: 'nested', policy: 'keep' },
      debug: { kind: 'bool' },
      log_format: { kind: 'text', policy: 'keep' },
      log_level: { kind: 'text', policy: 'keep' },
      log_path: { kind: 'text', policy: 'keep' },
      target_path: { kind: 'text', policy: 'keep' },
      project_dir: { kind: 'text', policy: 'keep' },
      quiet: { kind: 'bool' },
      write_json: { kind: 'bool' },
      write_catalog: { kind: 'bool' },
      manage_state: { kind: 'bool' },
      warn_error: { kind: 'bool' },
      warn_error_options: { kind: 'nested', message: 'invocation.InvocationWarnErrorOptions' },
    },
  },
  'invocation.InvocationWarnErrorOptions': {
    fields: {
      error: { kind: 'nested', policy: 'keep' },
      warn: { kind: 'nested', policy: 'keep' },
      silence: { kind: 'nested', policy: 'keep' },
    },
  },
  'invocation.InvocationMetrics': {
    fields: {
      total_errors: { kind: 'int64' },
      total_warnings: { kind: 'int64' },
      autofix_suggestions: { kind: 'int64' },
      node_type_counts: { kind: 'nested', entries: 'int64' },
      status_counts: { kind: 'nested', entries: 'int64' },
    },
  },
  'node.NodeCacheDetail': {
    fields: {
      node_cache_reason: { kind: 'enum' },
      build_after_seconds: { kind: 'int64' },
      last_updated_seconds: { kind: 'int64' },
    },
  },
  'node.TestEvaluationDetail': {
    fields: {
      test_outcome: { kind: 'enum' },
      failing_rows: { kind: 'int32' },
      diff_table: { kind: 'text', policy: 'diffTable' },
      store_failures: { kind: 'bool' },
      statically_checked: { kind: 'bool' },
      batch_unique_id: { kind: 'text', policy: 'keep' },
    },
  },
  'node.SourceFreshnessDetail': {
    fields: {
      node_freshness_outcome: { kind: 'enum' },
      age_seconds: { kind: 'int64' },
    },
  },
  'node.NodeSkipUpstreamDetail': {
    fields: {
      upstream_unique_id: { kind: 'text', policy: 'keep' },
    },
  },
  'node.NodeEvaluationDetail': {
    fields: {
      node_warning_outcome: { kind: 'enum' },
    },
  },
};

/** The rows by full name of the event type. */
export const EVENTS: ReadonlyMap<string, EventRow> = new Map(
  Object.entries(ROWS).map(([name, row]) => [EVENT_TYPE_PREFIX + name, row]),
);

/** Returns the fields of an event or of a message inside of events. @param shortName without the prefix */
export function fieldsOfMessage(shortName: string): Fields {
  return ROWS[shortName]?.fields ?? PART_ROWS[shortName]?.fields ?? {};
}

/** The fields of all messages; a name occurs once for each message that has it. */
export const ALL_FIELDS: readonly (readonly [name: string, row: FieldRow])[] = [
  ...Object.values(ROWS),
  ...Object.values(PART_ROWS),
].flatMap(({ fields }) => Object.entries(fields));

/** Returns what redaction does with the texts of a field. */
function policyOf({ kind, policy }: FieldRow): AttributePolicy {
  return policy ?? (kind === 'enum' ? 'keep' : 'text');
}

/** Policies of exported attributes by key; a key that is missing has the policy `text`. */
export const POLICY_BY_KEY: ReadonlyMap<string, AttributePolicy> = new Map(
  Object.values(ROWS)
    .flatMap(({ fields }) => exported(fields, ''))
    .filter(([, policy]) => policy !== 'text'),
);

function exported(fields: Fields, prefix: string): [key: string, policy: AttributePolicy][] {
  return Object.entries(fields).flatMap(([name, row]): [string, AttributePolicy][] => {
    const key = prefix + name;
    const inner = row.message === undefined ? {} : fieldsOfMessage(row.message);
    return [[key, policyOf(row)], ...exported(inner, row.lifted === undefined ? `${key}.` : '')];
  });
}
