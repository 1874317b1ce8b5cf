/**
 * A text's characters in memory of their own. What is cut out of a line (by `JSON.parse`, `slice` or a pattern) may be a
 * reference into it that keeps the whole line in memory; whoever holds such a text for long holds a copy instead.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
