import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { lengthText } from './length-text.js';

/** The nodes that took most work; nothing where none took any. */
export function SlowestNodes({ nodes }: { readonly nodes: readonly NodeMeasure[] }) {
  if (nodes.length === 0) return null;
  return (
    <section aria-labelledby="slowest">
      <h2 id="slowest">Slowest nodes</h2>
      <section class="scroll" tabindex={0} aria-label="Slowest nodes, longest first">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col" class="number">
                Work
              </th>
              <th scope="col" class="number">
                In the warehouse
              </th>
              <th scope="col" class="number">
                Queries
              </th>
              <th scope="col" class="number">
                Rows
              </th>
            </tr>
          </thead>
          <tbody>
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
          </tbody>
        </table>
      </section>
    </section>
  );
}
