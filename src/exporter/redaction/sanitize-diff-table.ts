import type { WordList } from './known-names.js';
import { sanitizeProse } from './sanitize-prose.js';

const RULE = /^\+[-+]+\+$/;
const HEADER = /^\|(?: [A-Za-z_][A-Za-z0-9_]* *\|)+$/;

/**
 * A unit test's table of differences, as `+---+` and `|` draw it: the columns' names stay, the cells do not.
 * What does not look like such a table is treated as prose.
 */
export function sanitizeDiffTable(table: string, names: WordList): string {
  const lines = table.split('\n');
  const [top = '', header = '', rule = ''] = lines;
  if (!RULE.test(top) || !HEADER.test(header) || !RULE.test(rule)) return sanitizeProse(table, names);
  const columns = header
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
  const rowCount = lines.slice(3).filter((line) => line.startsWith('|')).length;
  return `${columns.join(' | ')}\n${rowCount} differing row(s), values redacted`;
}
