import type { Child } from 'hono/jsx';
import type { CatalogRun } from '../../store/run-catalog.js';
import { lengthText } from './length-text.js';
import { Moment } from './moment.js';
import { runLengthMs } from './run-length.js';

/** What a run belongs to, when it was, and what ran it. */
export function RunFacts({ run, nowUnixMs }: { readonly run: CatalogRun; readonly nowUnixMs: number }) {
  const lengthMs = runLengthMs(run, nowUnixMs);
  return (
    <dl class="facts">
      <Fact name="Environment">{run.environment.name}</Fact>
      <Fact name="Project">{run.project.name}</Fact>
      {run.runKey !== null && <Fact name="Name">{run.runKey}</Fact>}
      {run.reason !== null && <Fact name="Started by">{run.reason}</Fact>}
      <Fact name={run.startedUnixMs === null ? 'Created' : 'Started'}>
        <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
      </Fact>
      {run.finishedUnixMs !== null && (
        <Fact name="Ended">
          <Moment unixMs={run.finishedUnixMs} />
        </Fact>
      )}
      {lengthMs !== null && <Fact name={run.finishedUnixMs === null ? 'So far' : 'Took'}>{lengthText(lengthMs)}</Fact>}
      {run.engineVersion !== null && <Fact name="Engine">{run.engineVersion}</Fact>}
      {run.gitBranch !== null && <Fact name="Branch">{run.gitBranch}</Fact>}
      {run.gitSha !== null && (
        <Fact name="Commit">
          <code>{run.gitSha.slice(0, 12)}</code>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children?: Child }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="name">{children}</dd>
    </div>
  );
}
