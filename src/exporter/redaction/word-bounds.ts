/**
 * Where the first word from an offset on begins; the text's length where there is none. A word is a stretch of letters,
 * digits, marks, `_` and `$`. Read by hand, as a pattern makes an object for each word, which costs more than finding it.
 * @param from no offset inside of a word
 */
export function wordStart(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

/** Where the word that begins at an offset ends: the offset of the first character that is not of it. */
export function wordEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < ASCII_CODES ? IS_ASCII_WORD[code] === 1 : WORD_CHAR.test(text.slice(at, at + unitsAt(text, at)));
}

/** One, or two for a character beyond the first 65,536. */
function unitsAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < FIRST_SURROGATE || code > LAST_SURROGATE) return 1;
  return (text.codePointAt(at) ?? 0) > LAST_SINGLE_UNIT ? 2 : 1;
}

const WORD_CHAR = /^[\p{L}\p{N}\p{M}_$]$/u;
const ASCII_CODES = 0x80;
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
const LAST_SINGLE_UNIT = 0xffff;
/** 1 at the code of each ASCII character that words have. */
const IS_ASCII_WORD = Uint8Array.from({ length: ASCII_CODES }, (_, code) =>
  WORD_CHAR.test(String.fromCharCode(code)) ? 1 : 0,
);
