import type { z } from 'zod';
import { alignedRows, cleanLine, cleanText, cut, harmlessJson } from '../core/text.js';

/** A value in a row of an answer. */
export type Cell = z.core.util.JSONType;

/** A column of an answer, with its type in DuckDB. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** DuckDB's types of numbers; exact ones may be returned as text. */
const NUMBER_TYPE = /^(?:BIGNUM|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

/** Whether a column has numbers. */
export function isNumeric({ type }: Pick<Column, 'type'>): boolean {
  return NUMBER_TYPE.test(type);
}

/** Formats an answer's rows as they arrive. */
export interface RowWriter {
  columns(columns: readonly Column[]): string;
  rows(rows: readonly (readonly Cell[])[]): string;
  end(): string;
}

/** Formats rows as a JSON array of objects, one on each line. */
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
 * Formats rows as comma-separated values (RFC 4180, with line feeds); lists and objects are JSON, and null is empty. Texts are made harmless: cleaned, and with an apostrophe before what a
 * spreadsheet would take for a formula.
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

/** Formats rows as a table for people, with columns as wide as needed and numbers on the right; buffers all rows until the end. */
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

/** Formats a value as text: empty for null, JSON for lists and objects. */
export function cellText(cell: Cell): string {
  if (cell === null) return '';
  return typeof cell === 'object' ? harmlessJson(JSON.stringify(cell)) : String(cell);
}

/** What spreadsheets take for the start of a formula, also in wide characters, or ignore before one. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

function csvCell(cell: Cell, isNumber = false): string {
  if (isNumber) return cellText(cell);
  const plain = cellText(cell);
  const text = `${FORMULA.test(plain) ? "'" : ''}${cleanText(plain)}`;
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

/** Formats a cell on one line, cut to a length. */
function tableCell(cell: Cell, maxChars: number): string {
  return cut(cleanLine(cellText(cell)), maxChars);
}
