/**
 * The text of a field's value as it stands in an object's text, without the blanks round it: parsed and written again, a
 * number beyond 2^53 would be another. The last one counts where there are several, as for `JSON.parse`.
 * @param json text of one JSON object, known to be one
 * @returns `undefined` where the object has no such field
 */
export function fieldText(json: string, name: string): string | undefined {
  let found: string | undefined;
  let at = json.indexOf('{') + 1;
  for (;;) {
    const keyStart = json.indexOf('"', at);
    if (keyStart < 0) return found;
    const keyEnd = endOfString(json, keyStart);
    const valueStart = json.indexOf(':', keyEnd) + 1;
    const valueEnd = endOfValue(json, valueStart);
    if (JSON.parse(json.slice(keyStart, keyEnd)) === name) found = json.slice(valueStart, valueEnd).trim();
    at = valueEnd;
  }
}

/** Behind the closing quote of a string that begins at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The comma behind a value, or the brace that closes the object. */
function endOfValue(json: string, start: number): number {
  let level = 0;
  let at = start;
  while (at < json.length) {
    const character = json[at];
    if (character === '"') {
      at = endOfString(json, at);
      continue;
    }
    if (character === '{' || character === '[') level++;
    if (character === '}' || character === ']') level--;
    if (level < 0 || (level === 0 && character === ',')) return at;
    at++;
  }
  return at;
}
