const LONG_INTEGER_LIKELY = /[[:,\s]-?\d{16}/;
const STRING_OR_NUMBER = /"|-?\d[\d.eE+-]*/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/**
 * Puts quotes round every integer of 16 or more digits in a JSON text, so that `JSON.parse` does not round it: OTLP's
 * 64-bit numbers may come as JSON numbers, and times exceed 2^53. A reviver sees a number's text only from Node 21 on,
 * and a parser in JavaScript is several times slower than `JSON.parse`; this pass runs only where such a number seems
 * to be there, in time linear in the text.
 */
export function quoteLongIntegers(json: string): string {
  if (!LONG_INTEGER_LIKELY.test(json)) return json;
  let quoted = '';
  let copiedTo = 0;
  STRING_OR_NUMBER.lastIndex = 0;
  for (let match = STRING_OR_NUMBER.exec(json); match !== null; match = STRING_OR_NUMBER.exec(json)) {
    const token = match[0];
    if (token === '"') {
      STRING_OR_NUMBER.lastIndex = endOfString(json, match.index + 1);
    } else if (LONG_INTEGER.test(token)) {
      quoted += `${json.slice(copiedTo, match.index)}"${token}"`;
      copiedTo = match.index + token.length;
    }
  }
  return quoted + json.slice(copiedTo);
}

/** Index after the quote that closes the string; the text's length when none does. */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (quote - backslashes > start && json[quote - backslashes - 1] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return json.length;
}
