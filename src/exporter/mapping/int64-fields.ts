/**
 * Fields of the public schema that are 64-bit integers, which JSON carries as strings; exported as OTel's int.
 * Ids (`parent_span_id`) are left as text. A test compares the list with the schema.
 */
const INT64_FIELDS: ReadonlySet<string> = new Set([
  'package_count',
  'item_count_total',
  'total_errors',
  'total_warnings',
  'autofix_suggestions',
  'limit',
  'num_threads',
  'idle_time_ms',
  'build_after_seconds',
  'last_updated_seconds',
  'rows_affected',
  'duration_ms',
  'age_seconds',
  'node_count_total',
  'node_count_skipped',
  'node_count_error',
]);

/** Maps of the public schema whose values are 64-bit integers. */
const INT64_MAPS: ReadonlySet<string> = new Set(['node_type_counts', 'status_counts']);

/** Whether a string at this field is a 64-bit integer. @param parent the field that holds it, for the entries of maps. */
export function isInt64Field(field: string, parent: string): boolean {
  return INT64_FIELDS.has(field) || INT64_MAPS.has(parent);
}

/** The integer that a string spells; the string itself beyond what a double holds exactly. */
export function int64Value(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) && text !== '' ? value : text;
}
