import { fieldTexts, itemTexts } from '../record/record-line.js';
import type { KeyOrder } from './message-layout.js';

/**
 * A JSON text without blanks whose objects have their keys in an order; those that the order does not know follow as they came. What
 * is no object, nor a list of some, is as it was.
 */
export function orderedJson(json: string, order: KeyOrder): string {
  if (json.startsWith('['))
    return `[${itemTexts(json)
      .map((item) => orderedObject(item, order))
      .join()}]`;
  return orderedObject(json, order);
}

function orderedObject(json: string, order: KeyOrder): string {
  if (!json.startsWith('{')) return json;
  const known = new Map<string, string>();
  const others: string[] = [];
  for (const { name, json: value } of fieldTexts(json)) {
    if (Object.hasOwn(order, name)) known.set(name, value);
    else others.push(`${JSON.stringify(name)}:${value}`);
  }
  const ordered = Object.entries(order).flatMap(([name, inner]) => {
    const value = known.get(name);
    if (value === undefined) return [];
    return [`${JSON.stringify(name)}:${inner === null ? value : orderedJson(value, inner)}`];
  });
  return `{${[...ordered, ...others].join()}}`;
}

/** What a `DebugValue` may hold, which its field is named after. */
export const DEBUG_TYPES: readonly string[] = ['string', 'float64', 'bool', 'bytes'];

/** Whether a JSON text is an object that maps names to `DebugValue`s, each an object with at most one field, named after its type. */
export function isDebugMap(json: string): boolean {
  return (
    json.startsWith('{') &&
    fieldTexts(json).every(({ json: value }) => {
      const fields = value.startsWith('{') ? fieldTexts(value) : undefined;
      return fields !== undefined && fields.length < 2 && fields.every(({ name }) => DEBUG_TYPES.includes(name));
    })
  );
}
