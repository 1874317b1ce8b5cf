import type { SchemaElement } from 'hyparquet';

/** What a leaf column holds: `spanId` is a uint64 given as 16 hexadecimal digits, `timestamp` nanoseconds without a zone. */
type ColumnKind = 'text' | 'spanId' | 'uint64' | 'timestamp' | 'int32' | 'uint32' | 'boolean';

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

/**
 * The value of the engine's only key-value entry, `ARROW:schema`: its Arrow schema as an IPC message in base64. It is the
 * same in every file of both builds; readers take dictionary types, large strings and `arrow.json` from it.
 */
export const ARROW_SCHEMA = [
  '/////2ARAAAUAAAAAAAAAAAACgAMAAoACQAEAAoAAAAIAAAAAAEEAADv//8EAAAAEQAAANwQAABwEAAAOBAAAPgPAAC4DwAAgA8AAMQNAAB0',
  'DQAAMA0AAPAMAAC0DAAAWAwAACwMAAD4CwAAxAsAAHALAAAEAAAAVPH//6wAAAAMAAAAAAAADUgLAAAmAAAAlAoAAEQKAADgCQAAlAkAAEAJ',
  'AADkCAAAmAgAAEQIAADwBwAAlAcAAEAHAADsBgAAmAYAADwGAADgBQAAsAUAAGAFAAAUBQAA5AQAALQEAABgBAAAGAQAALgDAABkAwAAMAMA',
  'APwCAADIAgAAdAIAAEQCAADsAQAAmAEAAFQBAAAgAQAAzAAAAKAAAABsAAAANAAAAAgAAADY7///BPH//xQAAAAMAAAAAAABFAwAAAAAAAAA',
  '9O///wUAAABncm91cAAAACzx//8QAAAAFAAAAAAAAQIQAAAA3vD//0AAAAAAAAAADQAAAHJvd3NfYWZmZWN0ZWQAAABg8f//EAAAABQAAAAA',
  'AAECEAAAABLx//9AAAAAAAAAAAsAAABkdXJhdGlvbl9tcwCQ8f//FAAAAAwAAAAAAAEUDAAAAAAAAACA8P//BwAAAGNvbnRlbnQAGPf//zQA',
  'AAAsAAAAAAABBQgAAAAoAAAAKPX//wwAAAAbAAAAAAAAANDw//8gAAAAAAAAAQAAAADI8P//DQAAAG91dHB1dF9mb3JtYXQAAAAI8v//FAAA',
  'AAwAAAAAAAEUDAAAAAAAAAD48P//DAAAAGNvbnRlbnRfaGFzaAAAAAA48v//EAAAABgAAAAAAAECFAAAADzx//8gAAAAAAAAAQAAAAAXAAAA',
  'cXVlcnlfZXJyb3JfdmVuZG9yX2NvZGUA2Pf//zQAAAAsAAAAAAABBQgAAAAoAAAA6PX//wwAAAAaAAAAAAAAAJDx//8gAAAAAAAAAQAAAACI',
  '8f//DAAAAGFkYXB0ZXJfdHlwZQAAAAAo+P//OAAAADAAAAAAAAEFCAAAACwAAABI8v//EAAAABkAAAAAAAAAAAAAAOTx//8gAAAAAAAAAQAA',
  'AADc8f//DQAAAHF1ZXJ5X291dGNvbWUAAAAc8///FAAAAAwAAAAAAAEUDAAAAAAAAAAM8v//CAAAAHF1ZXJ5X2lkAAAAAKj4//80AAAALAAA',
  'AAAAAQUIAAAAKAAAALj2//8MAAAAGAAAAAAAAABg8v//IAAAAAAAAAEAAAAAWPL//w0AAABhcnRpZmFjdF90eXBlAAAAmPP//xAAAAAUAAAA',
  'AAABAhAAAABK8///IAAAAAAAAAALAAAAY29kZV9jb2x1bW4AyPP//xAAAAAUAAAAAAABAhAAAAB68///IAAAAAAAAAAJAAAAY29kZV9saW5l',
  'AAAA+PP//xQAAAAMAAAAAAABFAwAAAAAAAAA6PL//w0AAAByZWxhdGl2ZV9wYXRoAAAAiPn//zQAAAAsAAAAAAABBQgAAAAoAAAAmPf//wwA',
  'AAAXAAAAAAAAAEDz//8gAAAAAAAAAQAAAAA48///DAAAAHBhY2thZ2VfbmFtZQAAAADY+f//OAAAADAAAAAAAAEFCAAAACwAAAD48///EAAA',
  'ABYAAAAAAAAAAAAAAJTz//8gAAAAAAAAAQAAAACM8///FgAAAG9yaWdpbmFsX3NldmVyaXR5X3RleHQAANT0//8QAAAAGAAAAAAAAQIUAAAA',
  '2PP//yAAAAAAAAABAAAAABgAAABvcmlnaW5hbF9zZXZlcml0eV9udW1iZXIAAAAAePr//zgAAAAwAAAAAAABBQgAAAAsAAAAmPT//xAAAAAV',
  'AAAAAAAAAAAAAAA09P//IAAAAAAAAAEAAAAALPT//wkAAABjb2RlX25hbWUAAABo9f//EAAAABQAAAAAAAECEAAAABr1//8gAAAAAAAAAAQA',
  'AABjb2RlAAAAAJT1//8QAAAAFAAAAAAAAQIQAAAARvX//yAAAAAAAAAABAAAAGxpbmUAAAAAIPv//zQAAAAsAAAAAAABBQgAAAAoAAAAMPn/',
  '/wwAAAAUAAAAAAAAANj0//8gAAAAAAAAAQAAAADQ9P//BAAAAGZpbGUAAAAAaPv//zQAAAAsAAAAAAABBQgAAAAoAAAAePn//wwAAAATAAAA',
  'AAAAACD1//8gAAAAAAAAAQAAAAAY9f//CAAAAGRldl9uYW1lAAAAAFT2//8UAAAADAAAAAAAAQYMAAAAAAAAAET1//8LAAAAc2FvX2VuYWJs',
  'ZWQA4Pv//zgAAAAwAAAAAAABBQgAAAAsAAAAAPb//xAAAAASAAAAAAAAAAAAAACc9f//IAAAAAAAAAEAAAAAlPX//xAAAABub2RlX3NraXBf',
  'cmVhc29uAAAAADj8//84AAAAMAAAAAAAAQUIAAAALAAAAFj2//8QAAAAEQAAAAAAAAAAAAAA9PX//yAAAAAAAAABAAAAAOz1//8SAAAAbm9k',
  'ZV9jYW5jZWxfcmVhc29uAACQ/P//NAAAACwAAAAAAAEFCAAAACgAAACg+v//DAAAABAAAAAAAAAASPb//yAAAAAAAAABAAAAAED2//8PAAAA',
  'bm9kZV9lcnJvcl90eXBlAOD8//80AAAALAAAAAAAAQUIAAAAKAAAAPD6//8MAAAADwAAAAAAAACY9v//IAAAAAAAAAEAAAAAkPb//wwAAABu',
  'b2RlX291dGNvbWUAAAAAMP3//zgAAAAwAAAAAAABBQgAAAAsAAAAUPf//xAAAAAOAAAAAAAAAAAAAADs9v//IAAAAAAAAAEAAAAA5Pb//wkA',
  'AABub2RlX3R5cGUAAACA/f//NAAAACwAAAAAAAEFCAAAACgAAACQ+///DAAAAA0AAAAAAAAAOPf//yAAAAAAAAABAAAAADD3//8WAAAAY3Vz',
  'dG9tX21hdGVyaWFsaXphdGlvbgAA2P3//zQAAAAsAAAAAAABBQgAAAAoAAAA6Pv//wwAAAAMAAAAAAAAAJD3//8gAAAAAAAAAQAAAACI9///',
  'DwAAAG1hdGVyaWFsaXphdGlvbgAo/v//OAAAADAAAAAAAAEFCAAAACwAAABI+P//EAAAAAsAAAAAAAAAAAAAAOT3//8gAAAAAAAAAQAAAADc',
  '9///CQAAAHVuaXF1ZV9pZAAAAHj+//80AAAALAAAAAAAAQUIAAAAKAAAAIj8//8MAAAACgAAAAAAAAAw+P//IAAAAAAAAAEAAAAAKPj//wUA',
  'AABwaGFzZQAAAMD+//84AAAAMAAAAAAAAQUIAAAALAAAAOD4//8QAAAACQAAAAAAAAAAAAAAfPj//yAAAAAAAAABAAAAAHT4//8TAAAAZGJ0',
  'X2NvcmVfZXZlbnRfY29kZQAY////OAAAADAAAAAAAAEFCAAAACwAAAA4+f//EAAAAAgAAAAAAAAAAAAAANT4//8gAAAAAAAAAQAAAADM+P//',
  'CgAAAGlkZW50aWZpZXIAAGj///80AAAALAAAAAAAAQUIAAAAKAAAAHj9//8MAAAABwAAAAAAAAAg+f//IAAAAAAAAAEAAAAAGPn//wYAAABz',
  'Y2hlbWEAALD///84AAAAMAAAAAAAAQUIAAAALAAAAND5//8QAAAABgAAAAAAAAAAAAAAbPn//yAAAAAAAAABAAAAAGT5//8IAAAAZGF0YWJh',
  'c2UAAAAAEAAYABQADgAPAAQAEAAIABAAAAA4AAAAMAAAAAAAAQUIAAAALAAAADD6//8QAAAABQAAAAAAAAAAAAAAzPn//yAAAAAAAAABAAAA',
  'AMT5//8EAAAAbmFtZQAAAADG/P//MAAAABQAAAAMAAAAAAABFAwAAAAAAAAA8Pn//wwAAABqc29uX3BheWxvYWQAAAAAAgAAAEAAAAAEAAAA',
  'fPz//wgAAAAUAAAACgAAAGFycm93Lmpzb24AABQAAABBUlJPVzpleHRlbnNpb246bmFtZQAAAAC0/P//CAAAAAwAAAAAAAAAAAAAABgAAABB',
  'UlJPVzpleHRlbnNpb246bWV0YWRhdGEAAAAACgAAAGF0dHJpYnV0ZXMAAOD6//84AAAAMAAAAAAAAAUIAAAALAAAADj7//8QAAAABAAAAAAA',
  'AAAAAAAA1Pr//yAAAAAAAAABAAAAAMz6//8KAAAAZXZlbnRfdHlwZQAACPz//xQAAAAMAAAAAAABFAwAAAAAAAAA+Pr//w4AAABzdGF0dXNf',
  'bWVzc2FnZQAAOPz//xAAAAAUAAAAAAABAhAAAADq+///IAAAAAAAAAALAAAAc3RhdHVzX2NvZGUAaPz//xQAAAAMAAAAAAABFAwAAAAAAAAA',
  'WPv//wQAAABib2R5AAAAALj7//88AAAANAAAAAAAAAUQAAAAMAAAAAgAEAAIAAQACAAAAAwAAAADAAAAAAAAALD7//8gAAAAAAAAAQAAAACo',
  '+///DQAAAHNldmVyaXR5X3RleHQAAADs/f//EAAAABgAAAAAAAACFAAAAOz7//8gAAAAAAAAAQAAAAAPAAAAc2V2ZXJpdHlfbnVtYmVyACD9',
  '//8UAAAADAAAAAAAAQoYAAAAAAAAAIL///8AAAMAAAAAAAAAAAAOAAAAdGltZV91bml4X25hbm8AAFz9//8UAAAADAAAAAAAAQoYAAAAAAAA',
  'AL7///8AAAMAAAAAAAAAAAASAAAAZW5kX3RpbWVfdW5peF9uYW5vAACc/f//HAAAAAwAAAAAAAEKIAAAAAAAAAAAAAYACAAGAAYAAAAAAAMA',
  'AAAAAAAAAAAUAAAAc3RhcnRfdGltZV91bml4X25hbm8AAAAA6P3//xgAAAAMAAAAAAABDJwBAAABAAAACAAAANz8//8M////JAAAAAwAAAAA',
  'AAANcAEAAAMAAAAYAQAA6AAAACAAAAAEAAYABAAAAAAAEgAYABQAEgATAAgAAAAMAAQAEgAAADAAAAAUAAAADAAAAAAAARQMAAAAAAAAADz9',
  '//8MAAAAanNvbl9wYXlsb2FkAAAAAAIAAABIAAAABAAAAMj///8IAAAAFAAAAAoAAABhcnJvdy5qc29uAAAUAAAAQVJST1c6ZXh0ZW5zaW9u',
  'Om5hbWUAAAAACAAMAAgABAAIAAAACAAAAAwAAAAAAAAAAAAAABgAAABBUlJPVzpleHRlbnNpb246bWV0YWRhdGEAAAAAEAAUABAAAAAPAAQA',
  'AAAIABAAAAAQAAAAFAAAAAAAAAIQAAAAvv7//0AAAAAAAAAABwAAAHNwYW5faWQAYP7//zgAAAAwAAAAAAAABQgAAAAsAAAAuP7//xAAAAAC',
  'AAAAAAAAAAAAAABU/v//IAAAAAAAAAEAAAAATP7//wgAAAB0cmFjZV9pZAAAAAAEAAAAaXRlbQAAAAAFAAAAbGlua3MAAACg////EAAAABQA',
  'AAAAAAECEAAAAFL///9AAAAAAAAAAA4AAABwYXJlbnRfc3Bhbl9pZAAA1P///xQAAAAMAAAAAAABFAwAAAAAAAAAxP7//wkAAABzcGFuX25h',
  'bWUAAAAQABQAEAAOAA8ABAAAAAgAEAAAABQAAAAMAAAAAAABFAwAAAAAAAAAAP///wgAAABldmVudF9pZAAAAAAQABYAEAAOAA8ABAAAAAgA',
  'EAAAABgAAAAcAAAAAAABAhgAAAAAAAYACAAEAAYAAABAAAAAAAAAAAcAAABzcGFuX2lkAKj///9AAAAAOAAAAAAAAAUQAAAANAAAAAgAFAAI',
  'AAQACAAAABAAAAABAAAAAAAAAAAAAACk////IAAAAAAAAAEAAAAAnP///wgAAAB0cmFjZV9pZAAAAAAQABgAFAAAAA8ABAAQAAgAEAAAAEAA',
  'AAA0AAAAAAAABRAAAAA0AAAACAAIAAAABAAIAAAADAAAAAgADAAEAAsACAAAACAAAAAAAAABAAAAAAQABAAEAAAACwAAAHJlY29yZF90eXBl',
  'AA==',
].join('');
