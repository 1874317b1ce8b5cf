import type { z } from 'zod';
import { alignedRows, cut } from '../core/text.js';

/** A value in a row of an answer. */
export type Cell = z.core.util.JSONType;

/** Writes an answer's rows as they come. */
export interface RowWriter {
  columns(names: readonly string[]): string;
  rows(rows: readonly (readonly Cell[])[]): string;
  end(): string;
}

/** An array of objects, one a line. */
export function jsonRows(): RowWriter {
  let names: readonly string[] = [];
  let isFirst = true;
  return {
    columns(all) {
      names = all;
      return '[';
    },
    rows: (rows) =>
      rows
        .map((row) => {
          const before = isFirst ? '\n' : ',\n';
          isFirst = false;
          return `${before}${JSON.stringify(Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])))}`;
        })
        .join(''),
    end: () => (isFirst ? ']\n' : '\n]\n'),
  };
}

/** Comma-separated values as RFC 4180 has them, with line feeds; what must be a string or number is JSON, and null is empty. */
export function csvRows(): RowWriter {
  const line = (cells: readonly Cell[]) => `${cells.map(csvCell).join(',')}\n`;
  return { columns: line, rows: (rows) => rows.map(line).join(''), end: () => '' };
}

/** A table for people: columns as wide as they need, numbers to the right; kept in memory until the end. */
export function tableRows(maxCellChars: number): RowWriter {
  let names: readonly string[] = [];
  const kept: (readonly Cell[])[] = [];
  return {
    columns(all) {
      names = all;
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
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}

function csvCell(cell: Cell): string {
  const text = cellText(cell);
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

/** In one line, without what a terminal would take for a command. */
function tableCell(cell: Cell, maxChars: number): string {
  const text = cellText(cell);
  const line = text.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}/gu, '\ufffd');
  return cut(line, maxChars);
}
