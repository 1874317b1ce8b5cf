import { ageText } from '../../run/measures/age-text.js';
import { countText } from './count-text.js';
import type { RunPageModel, SkippedNode, Some, StaleSource, TroubledNode } from './run-page-model.js';
import { ScrollTable } from './scroll-table.js';

/** What went wrong in a run: errors, failed tests, and what was skipped for them. Nothing where all is well. */
export function RunTroubles(props: { readonly sight: RunPageModel; readonly runId: number }) {
  const { sight, runId } = props;
  const { errors, failedTests, staleSources, otherOutcomes, skipped, messages } = sight;
  const hasTexts = errors.items.length > 0 || messages.length > 0;
  return (
    <>
      {hasTexts && (
        <section aria-labelledby="errors">
          <h2 id="errors">Errors</h2>
          {sight.redactor.level !== 'off' && (
            <p class="hint">Values in texts are shown as ?, as in messages; who may read artifacts sees them.</p>
          )}
          {errors.items.map((node) => (
            <ErrorOfNode node={node} />
          ))}
          <Omitted count={errors.omittedCount} noun="node with errors" plural="nodes with errors" runId={runId} />
          {messages.length > 0 && errors.items.length > 0 && <h3>Of no node</h3>}
          {messages.map((message) => (
            <pre class="error" tabindex={0}>
              {message}
            </pre>
          ))}
        </section>
      )}
      {failedTests.items.length > 0 && <FailedTests tests={failedTests} runId={runId} />}
      {staleSources.items.length > 0 && <StaleSources sources={staleSources} runId={runId} />}
      {otherOutcomes.items.length > 0 && <OtherOutcomes nodes={otherOutcomes} runId={runId} />}
      {skipped.items.length > 0 && <Skipped skipped={skipped} />}
    </>
  );
}

function ErrorOfNode({ node }: { readonly node: TroubledNode }) {
  return (
    <article class="trouble">
      <h3 class="name">
        <span class="mark bad" aria-hidden="true">
          ✗
        </span>{' '}
        {node.uniqueId}
      </h3>
      {node.message === '' ? (
        <p class="hint">It failed without a message.</p>
      ) : (
        <pre class="error" tabindex={0}>
          {node.message}
        </pre>
      )}
    </article>
  );
}

function FailedTests({ tests, runId }: { readonly tests: Some<TroubledNode>; readonly runId: number }) {
  return (
    <section aria-labelledby="tests">
      <h2 id="tests">Failed tests</h2>
      <ScrollTable label="Failed tests and their rows" columns={['Test', { number: 'Failing rows' }]}>
        {tests.items.map(({ uniqueId, message, failingRows, diffTable }) => (
          <tr>
            <th scope="row" class="name">
              {uniqueId}
              {message !== '' && <pre tabindex={0}>{message}</pre>}
              {diffTable !== null && diffTable !== '' && <pre tabindex={0}>{diffTable}</pre>}
            </th>
            <td class="number">{failingRows === null ? '–' : failingRows.toLocaleString('en')}</td>
          </tr>
        ))}
      </ScrollTable>
      <Omitted count={tests.omittedCount} noun="failed test" plural="failed tests" runId={runId} />
    </section>
  );
}

function StaleSources({ sources, runId }: { readonly sources: Some<StaleSource>; readonly runId: number }) {
  return (
    <section aria-labelledby="stale">
      <h2 id="stale">Stale sources</h2>
      <ScrollTable label="Stale sources and their age" columns={['Source', 'Last updated', 'Limit']}>
        {sources.items.map(({ uniqueId, ageSeconds, isFailed }) => (
          <tr>
            <th scope="row" class="name">
              {uniqueId}
            </th>
            <td class="nowrap">{ageSeconds === null ? 'not known' : `${ageText(ageSeconds)} ago`}</td>
            <td>{isFailed ? 'past the limit for an error' : 'past the limit for a warning'}</td>
          </tr>
        ))}
      </ScrollTable>
      <Omitted count={sources.omittedCount} noun="stale source" plural="stale sources" runId={runId} />
    </section>
  );
}

function OtherOutcomes({ nodes, runId }: { readonly nodes: Some<SkippedNode>; readonly runId: number }) {
  return (
    <section aria-labelledby="others">
      <h2 id="others">Other outcomes, in the words of the engine</h2>
      <ul>
        {nodes.items.map(({ uniqueId, reason }) => (
          <li>
            <span class="name">{uniqueId}</span>
            <span class="sub">{reason}</span>
          </li>
        ))}
      </ul>
      <Omitted count={nodes.omittedCount} noun="node" plural="nodes" runId={runId} />
    </section>
  );
}

function Skipped({ skipped: { items, omittedCount } }: { readonly skipped: Some<SkippedNode> }) {
  return (
    <section aria-labelledby="skipped">
      <h2 id="skipped">Skipped</h2>
      <details id="skipped-nodes">
        <summary>{countText(items.length + omittedCount, 'node')} did not run</summary>
        <ul>
          {items.map(({ uniqueId, reason, upstream }) => (
            <li>
              <span class="name">{uniqueId}</span>
              {upstream !== null && <span class="sub name">because of {upstream}</span>}
              {upstream === null && reason !== null && <span class="sub">{reason}</span>}
            </li>
          ))}
        </ul>
        {omittedCount > 0 && <p>and {omittedCount.toLocaleString('en')} more</p>}
      </details>
    </section>
  );
}

function Omitted(props: {
  readonly count: number;
  readonly noun: string;
  readonly plural: string;
  readonly runId: number;
}) {
  const { count, noun, plural, runId } = props;
  if (count === 0) return null;
  return (
    <p>
      and {countText(count, `more ${noun}`, `more ${plural}`)};{' '}
      <a href={`/api/run-bridge/v1/runs/${runId}/nodes`}>all nodes as JSON</a>
    </p>
  );
}
