import { eventName } from '../../run/event-name.js';

/**
 * How much of SQL leaves the machine. `literals` (default): statements stay readable, their literals become `?` and
 * their comments go. `statements`: no SQL at all, a hash instead. `off`: everything as the engine sent it.
 */
export type RedactionLevel = 'literals' | 'statements' | 'off';

/**
 * Who reads a text. `artifactReader`: somebody who is signed in here and may read artifacts, in which every text stands
 * whole. `anybodyElse`: a destination of telemetry, an endpoint of webhooks, a chat, a mailbox, and callers without that right.
 */
export type TextReader = 'artifactReader' | 'anybodyElse';

/** The one place that decides how much of a run's texts somebody is shown. @param setting `redaction`, of all or of the destination */
export function redactionFor(reader: TextReader, setting: RedactionLevel): RedactionLevel {
  return reader === 'artifactReader' ? 'off' : setting;
}

/**
 * What redaction does with an attribute's text. `keep`: structural, as it is. `name`: as it is when it looks like a name.
 * `sql`: a statement. `command`: a command line. `diffTable`: a unit test's differences. `text`: a message that may quote
 * SQL. `ownWords`: a text of which nothing is known, so that no list of words fits it. `deny`: never shown.
 */
export type AttributePolicy = 'keep' | 'name' | 'sql' | 'command' | 'diffTable' | 'text' | 'ownWords' | 'deny';

/**
 * The policy of an attribute by its exported key. What is not listed may hold anything, so it is `text`, or `ownWords` in
 * events of which the public schema of this version knows nothing.
 */
export function attributePolicyOf(key: string, eventType: string): AttributePolicy {
  const known = POLICIES.get(key);
  if (known !== undefined) return known;
  if (key.startsWith('extra.')) return 'deny';
  return KNOWN_EVENTS.has(eventName(eventType)) ? 'text' : 'ownWords';
}

/** Events of the public schema, by the last part of their names. */
export const KNOWN_EVENTS: ReadonlySet<string> = new Set(
  `AdapterConnectionClose AdapterConnectionOpen ArtifactWritten AssetParsed CallTrace CompiledCode CompiledCodeInline
   ConnectionLimitWait DebugValue DepsAddPackage DepsAllPackagesInstalled DepsPackageInstalled GenericOpExecuted
   GenericOpItemProcessed HookProcessed Invocation ListItemOutput LogMessage MicrobatchEvaluated NodeEvaluated NodeProcessed
   OnboardingScreenShown PackageUpdate PhaseExecuted Process ProgressMessage QueryExecuted ShowDataOutput ShowResult
   StateModifiedDiff ThreadPoolWait Unknown UserLogMessage`.split(/\s+/),
);

const KEPT = `
  unique_id name database schema identifier source_name materialization custom_materialization node_type node_outcome phase
  last_phase relative_path display_path expanded_relative_path file node_checksum node_error_type node_cancel_reason
  node_skip_reason node_cache_reason test_outcome batch_unique_id node_freshness_outcome node_warning_outcome
  node_skip_upstream_detail.upstream_unique_id dbt_core_event_code state_decision_id group batch_id batch_size
  event_time_start event_time_end sql_hash adapter_type adapter_backend query_id query_outcome hook_type hook_outcome
  package_name package_type package_version artifact_type operation_id invocation_id parent_span_id package version exe_path
  host_os host_arch process_info.package process_info.version process_info.host_os process_info.host_arch screen code_name
  original_severity_text output_format node_name columns node_type_or_category
  eval_args.command eval_args.profiles_dir eval_args.packages_install_path eval_args.target eval_args.profile
  eval_args.selector eval_args.select eval_args.exclude eval_args.indirect_selection eval_args.output_keys
  eval_args.resource_types eval_args.exclude_resource_types eval_args.log_format eval_args.log_level eval_args.log_path
  eval_args.target_path eval_args.project_dir eval_args.warn_error_options.error eval_args.warn_error_options.warn
  eval_args.warn_error_options.silence`;
const NAMES = 'target action display_action display_in_progress_action display_on_success_action check result_type';

const POLICIES: ReadonlyMap<string, AttributePolicy> = new Map<string, AttributePolicy>([
  ...entries(KEPT, 'keep'),
  ...entries(NAMES, 'name'),
  ['sql', 'sql'],
  ['raw_command', 'command'],
  ['diff_table', 'diffTable'],
  ...entries('eval_args.vars content self_value other_value', 'deny'),
]);

function entries(keys: string, policy: AttributePolicy): [string, AttributePolicy][] {
  return keys
    .split(/\s+/)
    .filter((key) => key !== '')
    .map((key) => [key, policy]);
}
