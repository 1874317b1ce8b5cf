import type { Child } from 'hono/jsx';

/** A column's heading; of numbers it stands at the right. */
export type Column = string | { readonly number: string };

/** A table with headings, in a part of the page that scrolls by itself where it is too wide. @param label what it shows */
export function ScrollTable(props: {
  readonly label: string;
  readonly columns: readonly Column[];
  /** Its rows. */
  readonly children?: Child;
}) {
  const { label, columns, children } = props;
  return (
    <section class="scroll" tabindex={0} aria-label={label}>
      <table>
        <thead>
          <tr>{columns.map(heading)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function heading(column: Column) {
  if (typeof column === 'string') return <th scope="col">{column}</th>;
  return (
    <th scope="col" class="number">
      {column.number}
    </th>
  );
}
