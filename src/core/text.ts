/** A number of things for people: `1 run`, `2 runs`, `0 queries`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** A text of at most so many UTF-16 units; one that is longer ends with `…`, and not within a character. */
export function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${startOf(text, maxLength - 1)}…`;
}

/** The start of a text: at most so many UTF-16 units, and not half of a character, which is no Unicode and which many readers refuse. */
export function startOf(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const last = text.charCodeAt(maxLength - 1);
  const isSplit = last >= 0xd800 && last < 0xdc00;
  return text.slice(0, isSplit ? maxLength - 1 : maxLength);
}

/** A duration with about three digits: `450 ms`, `12.3 s`, `2 min 5 s`, `1 h 2 min`. @param lengthMs at least 0 */
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

/** A number of bytes for people, for example `1.5 GiB`. */
export function readableBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${value < 10 && unit > 0 ? Math.round(value * 10) / 10 : Math.round(value)} ${UNITS[unit]}`;
}

/** How rows of text are laid out. */
export interface AlignmentOptions {
  /** Draws a line below the first row, which holds headings. */
  readonly hasRule?: boolean;
  /** Whether a column's cells stand on the right. Default: none. */
  readonly isRight?: (column: number) => boolean;
}

/** Rows for a terminal, in columns that are as wide as their widest cell and two spaces apart; cells are cleaned lines. Nothing stands behind a row's last cell. */
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
 * Characters that do something and are not seen: control characters (but tabs and line breaks), those that turn text around or
 * have no width, other ends of lines, and what XML refuses. A joiner between letters or signs that are not ASCII belongs to them.
 */
const ACTIVE =
  /(?![\n\t]|(?<=[^\p{ASCII}\p{Cf}])[\u200c\u200d](?=[^\p{ASCII}\p{Cf}]))(?:[\p{Cc}\p{Zl}\p{Zp}\ufffe\uffff]|(?=\p{Default_Ignorable_Code_Point})\p{Cf})/gu;

/** What CI systems take for a command in a log: GitHub and Azure (`::x`, `##[x]`, `##vso[x]`), TeamCity (`##teamcity[x]`), GitLab (`section_start:1`). */
const CI_COMMAND = /^[^\S\n]*:(?=:)|##(?=\w*\[)|section_(?:start|end)(?=:\d)/gim;

/** A text without what a terminal, the log of a CI system or a parser of XML does something about: such characters become `\ufffd`, and a space ends what would be a command. */
export function cleanText(text: string): string {
  // Halves of characters, too.
  const whole = Buffer.from(text.replaceAll('\r\n', '\n')).toString();
  return withoutCommands(whole.replaceAll(ACTIVE, '\ufffd'));
}

/** The same in one line. */
export function cleanLine(text: string): string {
  return cleanText(text).replaceAll(/\s+/g, ' ');
}

/** A text in which a space ends what a CI system would take for a command, as lines are now. */
export function withoutCommands(text: string): string {
  return text.replaceAll(CI_COMMAND, '$& ');
}

/** A text for a page, which shows characters that do something as `\u202e`, and does not let them. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(ACTIVE, escapes);
}

/** JSON for a terminal or the log of a CI system, which do nothing about it: equal once it is parsed. @param json of one line, or indented */
export function harmlessJson(json: string): string {
  // Other than in texts, JSON has neither such characters nor a # or a letter that is escaped here.
  return json
    .replaceAll(ACTIVE, escapes)
    .replaceAll(CI_COMMAND, (found) => found.slice(0, -1) + escapes(found.slice(-1)));
}

/** `\u202e`, each half of a character by itself. */
function escapes(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}

/** A time for people: `2026-01-31 12:34 UTC`. */
export function dateOf(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
