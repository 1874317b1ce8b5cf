import type { CatalogRun } from '../../store/run-catalog.js';
import { Fact } from './fact.js';
import { lengthText } from './length-text.js';
import { Moment } from './moment.js';
import { runLengthMs } from './run-length.js';

/** What a run belongs to, when it was, and what ran it. */
export function RunFacts({ run, nowUnixMs }: { readonly run: CatalogRun; readonly nowUnixMs: number }) {
  const lengthMs = runLengthMs(run, nowUnixMs);
  return (
    <dl class="facts">
      <Fact isName name="Environment">
        {run.environment.name}
      </Fact>
      <Fact isName name="Project">
        {run.project.name}
      </Fact>
      {run.runKey !== null && (
        <Fact isName name="Name">
          {run.runKey}
        </Fact>
      )}
      {run.reason !== null && (
        <Fact isName name="Started by">
          {run.reason}
        </Fact>
      )}
      <Fact isName name={run.startedUnixMs === null ? 'Created' : 'Started'}>
        <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
      </Fact>
      {run.finishedUnixMs !== null && (
        <Fact isName name="Ended">
          <Moment unixMs={run.finishedUnixMs} />
        </Fact>
      )}
      {lengthMs !== null && (
        <Fact isName name={run.finishedUnixMs === null ? 'So far' : 'Took'}>
          {lengthText(lengthMs)}
        </Fact>
      )}
      {run.engineVersion !== null && (
        <Fact isName name="Engine">
          {run.engineVersion}
        </Fact>
      )}
      {run.gitBranch !== null && (
        <Fact isName name="Branch">
          {run.gitBranch}
        </Fact>
      )}
      {run.gitSha !== null && (
        <Fact isName name="Commit">
          <code>{run.gitSha.slice(0, 12)}</code>
        </Fact>
      )}
    </dl>
  );
}
