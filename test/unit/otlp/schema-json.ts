import { readFileSync } from 'node:fs';

/** A field as the schema JSON spells it. */
export interface JsonField {
  readonly number: number;
  readonly name: string;
  /** A scalar, the full name of a message or enum, or `map<key,value>`. */
  readonly type: string;
  readonly optional?: true;
  readonly repeated?: true;
  readonly oneof?: string;
}

/** The public schema as `test/fixture/schema/telemetry-schema.json` spells it. */
export interface SchemaJson {
  readonly messages: Readonly<Record<string, readonly JsonField[]>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly files: Readonly<Record<string, { readonly package: string; readonly imports: readonly string[] }>>;
}

/** Reads a file below `test/fixture/schema/`. */
export function readSchemaJson(path: string): SchemaJson {
  return JSON.parse(readFileSync(new URL(`../../fixture/schema/${path}`, import.meta.url), 'utf8'));
}
