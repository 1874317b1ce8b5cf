/** Any value that JSON can spell. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a JSON value is an object (not a list, not null). */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * How many levels of objects and lists a record's JSON may have where it is read from a file. Code that walks JSON
 * recurses, and runs out of stack some thousands of levels down; the engine's records have about ten.
 */
export const MAX_JSON_LEVELS = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether a JSON text has more levels than {@link MAX_JSON_LEVELS}. Texts with few brackets are told at once. */
export function isNestedTooDeep(json: string): boolean {
  if (!hasManyBrackets(json)) return false;
  let level = 0;
  let isInString = false;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (isInString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) {
      isInString = true;
    } else if (code === 0x7b || code === 0x5b) {
      if (++level > MAX_JSON_LEVELS) return true;
    } else if (code === 0x7d || code === 0x5d) {
      level--;
    }
  }
  return false;
}

/** Whether there are more opening brackets than levels are allowed, strings included. */
function hasManyBrackets(json: string): boolean {
  let count = 0;
  for (const bracket of ['{', '[']) {
    for (let at = json.indexOf(bracket); at !== -1; at = json.indexOf(bracket, at + 1)) {
      if (++count > MAX_JSON_LEVELS) return true;
    }
  }
  return false;
}
