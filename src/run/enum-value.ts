import type { JsonValue } from '../record/json.js';

/** An enum's value without its prefix, in capitals: the schema's spelling and the documented one (`success`) read alike. */
export function enumValue(value: JsonValue | undefined, prefix: string): string | undefined {
  if (typeof value !== 'string') return undefined;
  const capitals = value.toUpperCase();
  return capitals.startsWith(prefix) ? capitals.slice(prefix.length) : capitals;
}
