import type { SchemaElement } from 'hyparquet';

/** What a leaf column holds: `spanId` is a uint64 given as 16 hexadecimal digits, `timestamp` nanoseconds without a zone. */
export type ColumnKind = 'text' | 'spanId' | 'uint64' | 'timestamp' | 'int32' | 'uint32' | 'boolean';

/** A leaf of the engine's Parquet schema. */
export interface LeafColumn {
  /** Names from the top-level column down. */
  readonly path: readonly string[];
  readonly kind: ColumnKind;
  /** Definition level of a present value: how many optional or repeated elements its path has. */
  readonly maxDefinition: number;
  /** 1 inside `links`, else 0. */
  readonly maxRepetition: number;
}

const ENVELOPE_BEFORE_LINKS = {
  record_type: 'text!',
  trace_id: 'text!',
  span_id: 'spanId',
  event_id: 'text',
  span_name: 'text',
  parent_span_id: 'spanId',
} as const;

const LINK = { trace_id: 'text!', span_id: 'spanId!', json_payload: 'text' } as const;

const ENVELOPE_AFTER_LINKS = {
  start_time_unix_nano: 'timestamp',
  end_time_unix_nano: 'timestamp',
  time_unix_nano: 'timestamp',
  severity_number: 'int32!',
  severity_text: 'text!',
  body: 'text',
  status_code: 'uint32',
  status_message: 'text',
  event_type: 'text!',
} as const;

const ATTRIBUTES = {
  json_payload: 'text',
  name: 'text',
  database: 'text',
  schema: 'text',
  identifier: 'text',
  dbt_core_event_code: 'text',
  phase: 'text',
  unique_id: 'text',
  materialization: 'text',
  custom_materialization: 'text',
  node_type: 'text',
  node_outcome: 'text',
  node_error_type: 'text',
  node_cancel_reason: 'text',
  node_skip_reason: 'text',
  sao_enabled: 'boolean',
  dev_name: 'text',
  file: 'text',
  line: 'uint32',
  code: 'uint32',
  code_name: 'text',
  original_severity_number: 'int32',
  original_severity_text: 'text',
  package_name: 'text',
  relative_path: 'text',
  code_line: 'uint32',
  code_column: 'uint32',
  artifact_type: 'text',
  query_id: 'text',
  query_outcome: 'text',
  adapter_type: 'text',
  query_error_vendor_code: 'int32',
  content_hash: 'text',
  output_format: 'text',
  content: 'text',
  duration_ms: 'uint64',
  rows_affected: 'uint64',
  group: 'text',
} as const;

/** A column inside `attributes`. */
export type AttributeColumn = keyof typeof ATTRIBUTES;

/** The kind of each column inside `attributes`, in the file's order; all are nullable. */
export const ATTRIBUTE_KINDS: Readonly<Record<AttributeColumn, Exclude<ColumnKind, 'spanId' | 'timestamp'>>> =
  ATTRIBUTES;

/** Whether a name is that of a column inside `attributes`. */
export function isAttributeColumn(name: string): name is AttributeColumn {
  return Object.hasOwn(ATTRIBUTES, name);
}

/** Every leaf in the file's order. `required` marks (`!` above) and nesting are the engine's. */
export const LEAF_COLUMNS: readonly LeafColumn[] = [
  ...leaves(ENVELOPE_BEFORE_LINKS, [], 0, 0),
  // An optional list of required items: one level says that there is a list, one that it has an item.
  ...leaves(LINK, ['links', 'list', 'item'], 2, 1),
  ...leaves(ENVELOPE_AFTER_LINKS, [], 0, 0),
  ...leaves(ATTRIBUTES, ['attributes'], 0, 0),
];

/** The Parquet schema, depth first as the footer holds it. */
export const SCHEMA: readonly SchemaElement[] = [
  { name: 'arrow_schema', num_children: 17 },
  ...elements(ENVELOPE_BEFORE_LINKS),
  {
    name: 'links',
    repetition_type: 'OPTIONAL',
    num_children: 1,
    converted_type: 'LIST',
    logical_type: { type: 'LIST' },
  },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'item', repetition_type: 'REQUIRED', num_children: 3 },
  ...elements(LINK),
  ...elements(ENVELOPE_AFTER_LINKS),
  { name: 'attributes', repetition_type: 'REQUIRED', num_children: Object.keys(ATTRIBUTES).length },
  ...elements(ATTRIBUTES),
];

type Spelling = ColumnKind | `${ColumnKind}!`;

function parse(spelling: Spelling): { kind: ColumnKind; required: boolean } {
  const required = spelling.endsWith('!');
  return { kind: (required ? spelling.slice(0, -1) : spelling) as ColumnKind, required };
}

function leaves(
  columns: Readonly<Record<string, Spelling>>,
  parents: readonly string[],
  parentDefinition: number,
  maxRepetition: number,
): LeafColumn[] {
  return Object.entries(columns).map(([name, spelling]) => {
    const { kind, required } = parse(spelling);
    return { path: [...parents, name], kind, maxDefinition: parentDefinition + (required ? 0 : 1), maxRepetition };
  });
}

function elements(columns: Readonly<Record<string, Spelling>>): SchemaElement[] {
  return Object.entries(columns).map(([name, spelling]) => {
    const { kind, required } = parse(spelling);
    return { ...physical(kind), repetition_type: required ? 'REQUIRED' : 'OPTIONAL', name };
  });
}

function physical(kind: ColumnKind): Omit<SchemaElement, 'name'> {
  switch (kind) {
    case 'text':
      return { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
    case 'spanId':
    case 'uint64':
      return {
        type: 'INT64',
        converted_type: 'UINT_64',
      };
    case 'timestamp':
      return { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'NANOS' } };
    case 'uint32':
      return {
        type: 'INT32',
        converted_type: 'UINT_32',
      };
    case 'int32':
      return { type: 'INT32' };
    case 'boolean':
      return { type: 'BOOLEAN' };
  }
}
