import type { Resource } from './resource.js';

/**
 * Resource attribute with the time at which an import began that handed the records over, in milliseconds since 1970, as a text
 * of digits. Nobody is notified of a run that had ended by then.
 */
export const IMPORT_ATTRIBUTE = 'run_bridge.import.began_unix_ms';

/** When the import began that a resource's records came by; `null` where they came as they happened. */
export function importBeganUnixMs({ attributes }: Resource): number | null {
  const value = attributes[IMPORT_ATTRIBUTE];
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** The resource as that of an import. */
export function asImported(resource: Resource, beganUnixMs: number): Resource {
  return { ...resource, attributes: { ...resource.attributes, [IMPORT_ATTRIBUTE]: String(beganUnixMs) } };
}

/** The resource as it was before an import. */
export function withoutImport(resource: Resource): Resource {
  const { [IMPORT_ATTRIBUTE]: _began, ...attributes } = resource.attributes;
  return { ...resource, attributes };
}
