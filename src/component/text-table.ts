/** How a table of text is laid out. */
export interface TextTableOptions {
  /** Draws a line below the headings. */
  readonly hasRule?: boolean;
  /** Columns whose cells stand on the right. */
  readonly isRight?: readonly boolean[];
}

/** Rows below their headings, in columns that are as wide as their widest cell and two spaces apart. Nothing stands behind a row's last cell. */
export function textTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { hasRule = false, isRight = [] }: TextTableOptions = {},
): readonly string[] {
  const widths = headings.map((heading, column) =>
    rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), heading.length),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (isRight[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  const rule = hasRule ? [widths.map((width) => '-'.repeat(width)).join('  ')] : [];
  return [line(headings), ...rule, ...rows.map(line)];
}
