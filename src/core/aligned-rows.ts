/** How rows of text are laid out. */
export interface AlignmentOptions {
  /** Draws a line below the first row, which holds headings. */
  readonly hasRule?: boolean;
  /** Whether a column's cells stand on the right. Default: none. */
  readonly isRight?: (column: number) => boolean;
}

/** Rows for a terminal, in columns that are as wide as their widest cell and two spaces apart. Nothing stands behind a row's last cell. */
export function alignedRows(
  rows: readonly (readonly string[])[],
  { hasRule = false, isRight = () => false }: AlignmentOptions = {},
): readonly string[] {
  const [first = []] = rows;
  const widths = first.map((_, column) => rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0));
  const pad = (cell: string, column: number) =>
    isRight(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  const lines = rows.map((row) => row.map(pad).join('  ').trimEnd());
  return hasRule ? lines.toSpliced(1, 0, widths.map((width) => '-'.repeat(width)).join('  ')) : lines;
}
