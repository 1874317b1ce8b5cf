import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { shareOf } from '../../run/measures/time-split.js';
import { lengthText } from './length-text.js';
import { ScrollTable } from './scroll-table.js';

/** The nodes without which the run would have been shortest; nothing where no time fell to any. */
export function SlowestNodes({
  nodes,
  lengthNano,
}: {
  readonly nodes: readonly NodeMeasure[];
  readonly lengthNano: bigint;
}) {
  if (nodes.length === 0) return null;
  return (
    <section aria-labelledby="slowest">
      <h2 id="slowest">Slowest nodes</h2>
      <ScrollTable
        label="Slowest nodes, longest first"
        columns={[
          'Node',
          { number: 'Share of the run' },
          { number: '%' },
          { number: 'In the warehouse' },
          { number: 'Queries' },
          { number: 'Rows' },
        ]}
      >
        {nodes.map((node) => (
          <tr>
            <th scope="row" class="name">
              {node.uniqueId}
            </th>
            <td class="number nowrap">{lengthText(Number(shareOf(node.share)) / 1e6)}</td>
            <td class="number nowrap">{percentText(shareOf(node.share), lengthNano)}</td>
            <td class="number nowrap">{lengthText(Number(node.warehouseTimeNano) / 1e6)}</td>
            <td class="number">{node.queryCount.toLocaleString('en')}</td>
            <td class="number">{node.rows === null ? '–' : node.rows.toLocaleString('en')}</td>
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}

function percentText(nano: bigint, lengthNano: bigint): string {
  const percent = lengthNano === 0n ? 0 : (Number(nano) / Number(lengthNano)) * 100;
  return percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1);
}
