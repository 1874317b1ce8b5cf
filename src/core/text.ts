/** Formats a number of things for people: `1 run`, `2 runs`, `0 queries`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** Cuts a text to `maxLength` UTF-16 units; a cut text ends with `…` and has no half of a surrogate pair. */
export function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${startOf(text, maxLength - 1)}…`;
}

/** Returns the start of a text, up to `maxLength` UTF-16 units and without half of a surrogate pair, which many readers refuse. */
export function startOf(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const last = text.charCodeAt(maxLength - 1);
  const isSplit = last >= 0xd800 && last < 0xdc00;
  return text.slice(0, isSplit ? maxLength - 1 : maxLength);
}

/** Formats a duration with about three digits: `450 ms`, `12.3 s`, `2 min 5 s`, `1 h 2 min`. @param lengthMs at least 0 */
export function lengthText(lengthMs: number): string {
  const ms = Math.max(0, lengthMs);
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Formats a number of bytes for people, for example `1.5 GiB`. */
export function readableBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${value < 10 && unit > 0 ? Math.round(value * 10) / 10 : Math.round(value)} ${UNITS[unit]}`;
}

/** How rows of text are laid out. */
export interface AlignmentOptions {
  /** Whether to draw a line below the first row, which has headings. */
  readonly hasRule?: boolean;
  /** Whether a column is aligned to the right. Default: none is. */
  readonly isRight?: (column: number) => boolean;
}

/** Lays out rows for a terminal in columns as wide as their widest cell and two spaces apart. Cells are cleaned (`cleanLine`), and lines have no trailing spaces. */
export function alignedRows(
  rows: readonly (readonly string[])[],
  { hasRule = false, isRight = () => false }: AlignmentOptions = {},
): readonly string[] {
  const cells = rows.map((row) => row.map(cleanLine));
  const [first = []] = cells;
  const widths = first.map((_, column) => cells.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0));
  const pad = (cell: string, column: number) =>
    isRight(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  const lines = cells.map((row) => row.map(pad).join('  ').trimEnd());
  return hasRule ? lines.toSpliced(1, 0, widths.map((width) => '-'.repeat(width)).join('  ')) : lines;
}

/**
 * Invisible characters with an effect: control characters (except tab and line feed), those that reverse text or have no width, other line separators, and what XML refuses. A joiner between letters
 * or signs that are not ASCII is part of them.
 */
const ACTIVE =
  /(?![\n\t]|(?<=[^\p{ASCII}\p{Cf}])[\u200c\u200d](?=[^\p{ASCII}\p{Cf}]))(?:[\p{Cc}\p{Zl}\p{Zp}\ufffe\uffff]|(?=\p{Default_Ignorable_Code_Point})\p{Cf})/gu;

/** Text that CI systems take for a command in a log: GitHub and Azure (`::x`, `##[x]`, `##vso[x]`), TeamCity (`##teamcity[x]`), GitLab (`section_start:1`). */
const CI_COMMAND = /^[^\S\n]*:(?=:)|##(?=\w*\[)|section_(?:start|end)(?=:\d)/gim;

/** Makes a text harmless for terminals, logs of CI systems and XML parsers: replaces active characters by `\ufffd` and breaks CI commands with a space. */
export function cleanText(text: string): string {
  // The round trip through UTF-8 replaces unpaired surrogates.
  const whole = Buffer.from(text.replaceAll('\r\n', '\n')).toString();
  return withoutCommands(whole.replaceAll(ACTIVE, '\ufffd'));
}

/** Cleans a text as `cleanText` does and puts it on one line. */
export function cleanLine(text: string): string {
  return cleanText(text).replaceAll(/\s+/g, ' ');
}

/** Breaks what a CI system would take for a command with a space. */
export function withoutCommands(text: string): string {
  return text.replaceAll(CI_COMMAND, '$& ');
}

/** Prepares a text for a page: active characters are shown as escapes like `\u202e`. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(ACTIVE, escapes);
}

/** Escapes JSON for a terminal or the log of a CI system; it parses to the same value. @param json on one line, or indented */
export function harmlessJson(json: string): string {
  // Outside of strings, JSON has neither such characters nor a `#` or letter that is escaped here.
  return json
    .replaceAll(ACTIVE, escapes)
    .replaceAll(CI_COMMAND, (found) => found.slice(0, -1) + escapes(found.slice(-1)));
}

/** Returns each UTF-16 unit of a text as an escape like `\u202e`. */
function escapes(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}

/** A time for people: `2026-01-31 12:34 UTC`. */
export function dateOf(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
