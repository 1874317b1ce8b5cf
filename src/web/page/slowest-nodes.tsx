import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { lengthText } from './length-text.js';
import { ScrollTable } from './scroll-table.js';

/** The nodes that took most work; nothing where none took any. */
export function SlowestNodes({ nodes }: { readonly nodes: readonly NodeMeasure[] }) {
  if (nodes.length === 0) return null;
  return (
    <section aria-labelledby="slowest">
      <h2 id="slowest">Slowest nodes</h2>
      <ScrollTable
        label="Slowest nodes, longest first"
        columns={[
          'Node',
          { number: 'Work' },
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
            <td class="number nowrap">{lengthText(node.durationMs ?? 0)}</td>
            <td class="number nowrap">{lengthText(Number(node.warehouseTimeNano) / 1e6)}</td>
            <td class="number">{node.queryCount.toLocaleString('en')}</td>
            <td class="number">{node.rows === null ? '–' : node.rows.toLocaleString('en')}</td>
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}
