import type { JsonValue } from '../record/json.js';

/** Sets a key that someone else chose: `__proto__` becomes a key like any other. */
export function setOwn(target: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}
