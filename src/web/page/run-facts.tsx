import type { Child } from 'hono/jsx';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { Fact } from './fact.js';
import { lengthText } from './length-text.js';
import { Moment } from './moment.js';
import { runLengthMs } from './run-length.js';

/** What a run belongs to, when it was, and what ran it. */
export function RunFacts({ run, nowUnixMs }: { readonly run: CatalogRun; readonly nowUnixMs: number }) {
  return (
    <dl class="facts">
      {factsOf(run, nowUnixMs).map(
        ([name, text]) =>
          text !== null && (
            <Fact isName name={name}>
              {text}
            </Fact>
          ),
      )}
    </dl>
  );
}

/** In the order in which they stand; `null` for what is not known. */
function factsOf(run: CatalogRun, nowUnixMs: number): readonly (readonly [name: string, text: Child | null])[] {
  const { startedUnixMs, finishedUnixMs, gitSha } = run;
  const lengthMs = runLengthMs(run, nowUnixMs);
  return [
    ['Environment', run.environment.name],
    ['Project', run.project.name],
    ['Name', run.runKey],
    ['Started by', run.reason],
    [startedUnixMs === null ? 'Created' : 'Started', <Moment unixMs={startedUnixMs ?? run.createdUnixMs} />],
    ['Ended', finishedUnixMs === null ? null : <Moment unixMs={finishedUnixMs} />],
    [finishedUnixMs === null ? 'So far' : 'Took', lengthMs === null ? null : lengthText(lengthMs)],
    ['Engine', run.engineVersion],
    ['Branch', run.gitBranch],
    ['Commit', gitSha === null ? null : <code>{gitSha.slice(0, 12)}</code>],
  ];
}
