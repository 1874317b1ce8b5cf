/** A resource attribute's value: OTLP's scalars and lists of them. */
export type ResourceValue = string | number | boolean | readonly (string | number | boolean)[];

/** What sent the records: the process's resource and its instrumentation scope. */
export interface Resource {
  readonly attributes: Readonly<Record<string, ResourceValue>>;
  readonly scope: { readonly name: string; readonly version: string };
}

/** The resource of records that came without one (JSONL and Parquet files have none). */
export const UNKNOWN_RESOURCE: Resource = { attributes: {}, scope: { name: '', version: '' } };

/** A text that is equal for equal resources, whatever the order of their attributes. */
export function resourceKey(resource: Resource): string {
  let key = KEYS.get(resource);
  if (key === undefined) {
    const attributes = Object.entries(resource.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
    key = JSON.stringify([attributes, resource.scope.name, resource.scope.version]);
    KEYS.set(resource, key);
  }
  return key;
}

/** Asked of every record, and records share a few resources. */
const KEYS = new WeakMap<Resource, string>();
