import type { z } from 'zod';
import { alignedRows, cleanLine, cleanText, cut, harmlessJson } from '../core/text.js';

/** A value in a row of an answer. */
export type Cell = z.core.util.JSONType;

/** A column of an answer, with its type in DuckDB. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** DuckDB's types of numbers; exact ones may come as text. */
const NUMBER_TYPE = /^(?:BIGNUM|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

/** Whether a column has numbers. */
export function isNumeric({ type }: Pick<Column, 'type'>): boolean {
  return NUMBER_TYPE.test(type);
}

/** Writes an answer's rows as they come. */
export interface RowWriter {
  columns(columns: readonly Column[]): string;
  rows(rows: readonly (readonly Cell[])[]): string;
  end(): string;
}

/** An array of objects, one a line. */
export function jsonRows(): RowWriter {
  let names: readonly string[] = [];
  let isFirst = true;
  return {
    columns(all) {
      names = all.map(({ name }) => name);
      return '[';
    },
    rows: (rows) =>
      rows
        .map((row) => {
          const before = isFirst ? '\n' : ',\n';
          isFirst = false;
          return `${before}${harmlessJson(JSON.stringify(Object.fromEntries(names.map((name, index) => [name, row[index] ?? null]))))}`;
        })
        .join(''),
    end: () => (isFirst ? ']\n' : '\n]\n'),
  };
}

/**
 * Comma-separated values as RFC 4180 has them, with line feeds; what must be a string or number is JSON, and null is empty.
 * Texts are harmless: cleaned, and with an apostrophe in front where a spreadsheet would take one for a formula.
 */
export function csvRows(): RowWriter {
  let numeric: readonly boolean[] = [];
  return {
    columns(all) {
      numeric = all.map(isNumeric);
      return `${all.map(({ name }) => csvCell(name, false)).join(',')}\n`;
    },
    rows: (rows) =>
      rows.map((row) => `${row.map((cell, index) => csvCell(cell, numeric[index])).join(',')}\n`).join(''),
    end: () => '',
  };
}

/** A table for people: columns as wide as they need, numbers to the right; kept in memory until the end. */
export function tableRows(maxCellChars: number): RowWriter {
  let names: readonly string[] = [];
  const kept: (readonly Cell[])[] = [];
  return {
    columns(all) {
      names = all.map(({ name }) => name);
      return '';
    },
    rows(rows) {
      kept.push(...rows);
      return '';
    },
    end: () => table(names, kept, maxCellChars),
  };
}

/** A value in words: nothing for null, JSON for what has parts. */
export function cellText(cell: Cell): string {
  if (cell === null) return '';
  return typeof cell === 'object' ? harmlessJson(JSON.stringify(cell)) : String(cell);
}

/** What spreadsheets take for the start of a formula, in wide characters as well, or leave out in front of it. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

function csvCell(cell: Cell, isNumber = false): string {
  if (isNumber) return cellText(cell);
  const own = cellText(cell);
  const text = `${FORMULA.test(own) ? "'" : ''}${cleanText(own)}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function table(names: readonly string[], rows: readonly (readonly Cell[])[], maxCellChars: number): string {
  const texts = rows.map((row) => row.map((cell) => tableCell(cell, maxCellChars)));
  const heads = names.map((name) => tableCell(name, maxCellChars));
  const isNumber = names.map(
    (_, column) => rows.length > 0 && rows.every((row) => row[column] === null || typeof row[column] === 'number'),
  );
  return `${alignedRows([heads, ...texts], { hasRule: true, isRight: (column) => isNumber[column] === true }).join('\n')}\n`;
}

/** In one line, not longer than people read. */
function tableCell(cell: Cell, maxChars: number): string {
  return cut(cleanLine(cellText(cell)), maxChars);
}
