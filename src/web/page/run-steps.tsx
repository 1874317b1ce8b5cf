import type { CatalogStep } from '../../storage/run-catalog.js';
import { lengthText } from './length-text.js';
import { RunMark } from './run-mark.js';
import type { RunPageModel } from './run-page-model.js';
import { ScrollTable } from './scroll-table.js';

/** The commands of a run. */
export function RunSteps(props: {
  readonly steps: readonly CatalogStep[];
  /** Why steps did not end well, and what of commands is shown. */
  readonly sight: Pick<RunPageModel, 'stepMessages' | 'redactor'>;
  readonly nowUnixMs: number;
}) {
  const { steps, sight, nowUnixMs } = props;
  const { stepMessages: messages, redactor } = sight;
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">{steps.length === 1 ? 'Command' : 'Steps'}</h2>
      {steps.length === 0 && <p class="hint">No command has begun.</p>}
      {steps.length > 0 && (
        <ScrollTable
          label="Commands in their order"
          columns={[{ number: 'Step' }, 'Command', 'Status', { number: 'Took' }]}
        >
          {steps.map((step) => (
            <tr>
              <td class="number">{step.index}</td>
              <th scope="row" class="name">
                <code>{redactor.command(commandOf(step))}</code>
                {steps.length > 1 && messages.has(step.id) && <span class="sub text">{messages.get(step.id)}</span>}
              </th>
              <td>
                <RunMark status={step.status} />
              </td>
              <td class="number nowrap">{lengthText(lengthMsOf(step, nowUnixMs))}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  );
}

/** The engine command where there is one, else what was started. */
function commandOf({ command, invocations }: CatalogStep): string {
  const [only, ...others] = invocations;
  const typed = others.length === 0 ? only?.command : null;
  return typed ?? command.join(' ');
}

function lengthMsOf({ startedUnixMs, createdUnixMs, finishedUnixMs }: CatalogStep, nowUnixMs: number): number {
  return (finishedUnixMs ?? nowUnixMs) - (startedUnixMs ?? createdUnixMs);
}
