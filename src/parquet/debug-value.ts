import { isJsonObject, type JsonValue } from '../record/json.js';

/** Whether a JSON value is a `v1.public.events.fusion.dev.DebugValue`: an object with at most one field, named after its type. */
export function isDebugValue(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 0 || (keys.length === 1 && /^(float64|bool|string|bytes)$/.test(keys[0] ?? ''));
}
