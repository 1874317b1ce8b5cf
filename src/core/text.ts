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

/** Characters at the start of a shortened text that say what it is. */
const START_CHARS = 6;

/**
 * Shortens texts in the middle, so that different ones stay different where they can: of those that would look alike, what is before their
 * first difference is left out.
 * @param maxChars of each, more than 16
 * @returns the shortened ones by the whole ones
 */
export function distinctTexts(texts: Iterable<string>, maxChars: number): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const alike = new Map<string, string[]>();
  for (const text of new Set(texts)) {
    const short = cutInMiddle(Array.from(text), maxChars);
    found.set(text, short);
    const known = alike.get(short);
    if (known === undefined) alike.set(short, [text]);
    else known.push(text);
  }
  for (const group of alike.values()) {
    if (group.length < 2) continue;
    const sorted = [...group].sort();
    const [first = [], last = []] = [sorted.at(0), sorted.at(-1)].map((text) => Array.from(text ?? ''));
    const differs = first.findIndex((character, at) => character !== last[at]);
    // With a little of what is the same before it, and with as much behind it as there is room for.
    const from = Math.max(START_CHARS, differs < 0 ? first.length : differs - START_CHARS);
    for (const text of group) {
      const characters = Array.from(text);
      const rest = cutInMiddle(characters.slice(from), maxChars - START_CHARS - 1);
      found.set(text, `${characters.slice(0, START_CHARS).join('')}…${rest}`);
    }
  }
  return found;
}

function cutInMiddle(characters: readonly string[], maxChars: number): string {
  if (characters.length <= maxChars) return characters.join('');
  const half = Math.floor(maxChars / 2);
  return `${characters.slice(0, half).join('')}…${characters.slice(half + 1 - maxChars).join('')}`;
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

const DAY_S = 86_400;
const HOUR_S = 3_600;
const MINUTE_S = 60;

/** An age in its two largest units: `325 days 13 h`, `2 h 5 min`, `40 s`. */
export function ageText(seconds: number): string {
  const days = Math.floor(seconds / DAY_S);
  const hours = Math.floor((seconds % DAY_S) / HOUR_S);
  const minutes = Math.floor((seconds % HOUR_S) / MINUTE_S);
  if (days > 0) return `${counted(days, 'day')}${hours > 0 ? ` ${hours} h` : ''}`;
  if (hours > 0) return `${hours} h${minutes > 0 ? ` ${minutes} min` : ''}`;
  return minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
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
