/** Longest status message; the whole text is in the `exception` event. */
const MAX_HEADLINE_LENGTH = 512;

/**
 * What a span's status says of a message: its first two lines in one, which is where the engine and databases say what is
 * wrong. At most 512 UTF-16 units and `…`.
 */
export function headlineOf(message: string): string {
  if (message.length <= MAX_HEADLINE_LENGTH && !message.includes('\n')) {
    // Most messages, without lists made of them.
    const line = message.trim();
    return line.startsWith('LINE ') ? '' : line;
  }
  const lines = message.split('\n').map((line) => line.trim());
  const headline = lines
    .filter((line) => line !== '' && !line.startsWith('LINE '))
    .slice(0, 2)
    .join(' ');
  return headline.length > MAX_HEADLINE_LENGTH ? `${headline.slice(0, MAX_HEADLINE_LENGTH)}…` : headline;
}
