import { Router } from 'express';
import type { Child } from 'hono/jsx';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { idIn } from '../../api/parameters.js';
import { may, Permits, withPermit } from '../../api/permissions.js';
import { lengthText } from '../../core/text.js';
import { ageText } from '../../run/measures/measures-document.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { shareOf } from '../../run/measures/time-split.js';
import type { KnownVerdict } from '../../run/verdict.js';
import { encodedArtifactPath, stepTelemetryOf } from '../../storage/artifact/artifact-store.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import { isFinal, parseRunNumber, RUN_STATUS } from '../../storage/state-tables.js';
import { Layout, sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { countText, Fact, Moment, RunMark, runLengthMs, ScrollTable } from './parts.js';
import {
  type RunPageModel,
  readRunPageModel,
  type SkippedNode,
  type Some,
  type StaleSource,
  type TroubledNode,
} from './run-page-model.js';

/** A run and what was found of it. */
export interface SeenRun {
  readonly run: CatalogRun;
  readonly steps: readonly CatalogStep[];
  readonly sight: RunPageModel;
  readonly downloads: readonly Download[] | 'unreadable' | null;
}

/** One run: how it ended and why, then failures, durations, commands, and links. */
export function RunPage(props: {
  readonly caller: Caller;
  readonly seen: SeenRun;
  readonly nowUnixMs: number;
  readonly version: string;
}) {
  const { caller, seen, nowUnixMs, version } = props;
  const { run, steps, sight, downloads } = seen;
  const isLive = !isFinal(run.status);
  return (
    <Layout title={`${run.job.name} #${run.id}`} caller={caller} version={version} isLive={isLive}>
      <div id="live" {...(isLive && { 'data-live': '2000' })}>
        <h1>
          <span class="name">{run.job.name}</span> #{run.id} <RunMark status={run.status} />
        </h1>
        <RunVerdict run={run} sight={sight} nowUnixMs={nowUnixMs} />
        <RunFacts run={run} nowUnixMs={nowUnixMs} />
        <RunTroubles sight={sight} runId={run.id} />
        <SlowestNodes nodes={sight.slowest} lengthNano={sight.lengthNano} />
        <RunSteps steps={steps} sight={sight} nowUnixMs={nowUnixMs} />
        <RunDownloads downloads={downloads} steps={steps} />
        <Documents runId={run.id} />
      </div>
    </Layout>
  );
}

function Documents({ runId }: { readonly runId: number }) {
  const base = `/api/run-bridge/v1/runs/${runId}`;
  return (
    <section aria-labelledby="documents">
      <h2 id="documents">For programs</h2>
      <ul>
        <li>
          <a href={base}>The run</a>, <a href={`${base}/nodes`}>every node with its errors</a>,{' '}
          <a href={`${base}/measures`}>measures</a>, <a href={`${base}/records`}>records</a> (JSON)
        </li>
        <li>
          <a href="/api/openapi.json">What the API has</a> (OpenAPI)
        </li>
      </ul>
    </section>
  );
}

/** `/runs/{id}`: one run. It is also where the hosted platform has it, for links that clients make or follow (`href`). */
export function runRouter(deps: PageDeps): Router {
  const { catalog, clock, version } = deps;
  const permits = new Permits('requests for runs');
  const router = Router();
  router.get(
    '/deploy/:accountId/projects/:projectId/runs/:runId',
    authorize('runs:read'),
    async (request, response) => {
      const run = await catalog.findRun(callerOf(response).accountId, idIn(request, 'runId'));
      if (run?.project.id !== idIn(request, 'projectId')) throw ApiError.notFound();
      response.redirect(303, `/runs/${run.id}`);
    },
  );
  router.get('/runs/:runId', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const runId = parseRunNumber(request.params.runId);
    const run = runId === undefined ? undefined : await catalog.findRun(caller.accountId, runId);
    if (run === undefined) throw ApiError.notFound();
    const steps = await catalog.stepsOf(caller.accountId, [run.id]);
    // Whole record logs may have to be read, so not for all at once.
    const sight = await withPermit(permits, response, () => readRunPageModel(run, steps, caller, deps), tooMany);
    const downloads = await runDownloads(caller, steps, deps);
    const seen = { run, steps, sight, downloads };
    await sendPage(response, <RunPage caller={caller} seen={seen} nowUnixMs={clock.nowUnixMs()} version={version} />);
  });
  return router;
}

function tooMany(reason: string): string {
  return `Too many clients are reading runs at the moment: ${reason}.`;
}

/** A file of a step. */
export interface Download {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Below the step's artifacts, such as `run_results.json`. */
  readonly path: string;
  /** Its address in the API. */
  readonly href: string;
}

/** What a run has to download; `null` where the caller may not, `unreadable` where the store does not answer. */
export async function runDownloads(
  caller: Caller,
  steps: readonly CatalogStep[],
  { artifacts, logger }: Pick<PageDeps, 'artifacts' | 'logger'>,
): Promise<readonly Download[] | 'unreadable' | null> {
  if (!may(caller, 'artifacts:read')) return null;
  try {
    const lists = await Promise.all(steps.map(async (step) => ({ step, paths: await artifacts.list(step) })));
    return lists.flatMap(({ step: { accountId, runId, index }, paths }) =>
      paths.map((path) => {
        const href = `/api/v2/accounts/${accountId}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;
        return { stepIndex: index, path, href };
      }),
    );
  } catch (error) {
    // The run is shown nevertheless.
    logger.error({ error: String(error) }, 'failed to list artifacts');
    return 'unreadable';
  }
}

/** Missing artifacts that are named. */
const MAX_MISSING = 200;

/** Links to what a run left. */
export function RunDownloads(props: {
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly steps: readonly CatalogStep[];
}) {
  const { downloads, steps } = props;
  const hasSeveralSteps = steps.length > 1;
  if (downloads === null) return null;
  return (
    <section aria-labelledby="artifacts">
      <h2 id="artifacts">Artifacts</h2>
      {steps.map((step) => (
        <Incomplete step={step} downloads={downloads} hasSeveralSteps={hasSeveralSteps} />
      ))}
      {downloads === 'unreadable' && <p class="notice bad">Artifacts cannot be listed just now; the log says why.</p>}
      {downloads !== 'unreadable' && downloads.length === 0 && <p class="hint">There are none (yet).</p>}
      {downloads !== 'unreadable' && downloads.length > 0 && (
        <ul>
          {downloads.map(({ stepIndex, path, href }) => (
            <li>
              <a href={href} download>
                {path}
              </a>
              {hasSeveralSteps && <span class="sub">step {stepIndex}</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The progress of the upload of a step's artifacts, or the missing ones. */
function Incomplete(props: {
  readonly step: CatalogStep;
  readonly downloads: readonly Download[] | 'unreadable';
  readonly hasSeveralSteps: boolean;
}) {
  const { step, downloads, hasSeveralSteps } = props;
  const { artifacts, index } = step;
  if (artifacts === null) return null;
  const { state, expectedCount, missing, reason } = artifacts;
  const of = hasSeveralSteps ? ` of step ${index}` : '';
  if (state === 'uploading') {
    const kept = downloads === 'unreadable' ? [] : downloads.filter((one) => one.stepIndex === index);
    const count = kept.filter(({ path }) => stepTelemetryOf(path) === undefined).length;
    return (
      <p class="notice">
        {count.toLocaleString('en')} of {countText(expectedCount, 'artifact')}
        {of} have been uploaded; the run is over when all are there.
      </p>
    );
  }
  return (
    <details>
      <summary class="notice bad">
        {missing.length.toLocaleString('en')} of {countText(expectedCount, 'artifact')}
        {of} never came: {reason}
      </summary>
      <ul>
        {missing.slice(0, MAX_MISSING).map((path) => (
          <li class="name">{path}</li>
        ))}
      </ul>
      {missing.length > MAX_MISSING && <p>and {(missing.length - MAX_MISSING).toLocaleString('en')} more</p>}
    </details>
  );
}

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

/** In display order; `null` if unknown. */
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

/** Failures of a run: errors, failed tests, and the nodes skipped because of them. Nothing if all is well. */
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
            <p class="hint">Values in texts are shown as ?, as in messages; users who may read artifacts see them.</p>
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

/** In order of relevance. */
const WORDS: readonly (readonly [verdict: KnownVerdict, one: string, many: string])[] = [
  ['error', 'error', 'errors'],
  ['failed', 'failed test', 'failed tests'],
  ['canceled', 'interrupted', 'interrupted'],
  ['skipped', 'skipped', 'skipped'],
  ['unfinished', 'unfinished', 'unfinished'],
  ['warned', 'warned', 'warned'],
  ['success', 'succeeded', 'succeeded'],
];

/** How a run ended, why, and the verdicts of its nodes. */
export function RunVerdict(props: {
  readonly run: CatalogRun;
  readonly sight: RunPageModel;
  readonly nowUnixMs: number;
}) {
  const { run, sight, nowUnixMs } = props;
  const lengthMs = runLengthMs(run, nowUnixMs);
  const after = lengthMs === null ? '' : ` after ${lengthText(lengthMs)}`;
  const counted = countedWords(sight);
  return (
    <section class={`verdict ${moodOf(run)}`} aria-label="How it ended">
      <p class="strong">{sentenceOf(run, after)}</p>
      {sight.statusMessage !== null && <p class="text">{sight.statusMessage}</p>}
      {counted.length > 0 && (
        <p>
          {countText(
            counted.reduce((sum, [count]) => sum + count, 0),
            'node',
          )}
          {': '}
          {counted.map(([count, one, many]) => countText(count, one, many)).join(', ')}
        </p>
      )}
      {!sight.hasTelemetry && isFinal(run.status) && (
        <p>Nothing is kept of its telemetry: it sent none, or what was kept was removed.</p>
      )}
    </section>
  );
}

/** Counts of nodes with their words, in order of relevance; an unknown outcome in the engine's own word. */
function countedWords({ counts, noOpCount }: RunPageModel) {
  const known: readonly string[] = WORDS.map(([verdict]) => verdict);
  const words = [
    ...WORDS.map(
      ([verdict, one, many]) => [counts[verdict] - (verdict === 'skipped' ? noOpCount : 0), one, many] as const,
    ),
    [noOpCount, 'no-op', 'no-ops'] as const,
    ...Object.entries(counts)
      .filter(([word]) => !known.includes(word))
      .map(([word, count]) => [count, word, word] as const),
  ];
  return words.filter(([count]) => count > 0);
}

function sentenceOf({ status }: CatalogRun, after: string): string {
  switch (status) {
    case RUN_STATUS.queued:
      return 'Waits for its turn.';
    case RUN_STATUS.starting:
      return 'Is starting; no telemetry has come yet.';
    case RUN_STATUS.running:
      return `Running${after.replace('after', 'for')}. This page follows it.`;
    case RUN_STATUS.success:
      return `Succeeded${after}.`;
    case RUN_STATUS.error:
      return `Failed${after}.`;
    case RUN_STATUS.cancelled:
      return `Was cancelled${after}.`;
  }
}

function moodOf({ status }: CatalogRun): string {
  if (status === RUN_STATUS.error) return 'bad';
  if (status === RUN_STATUS.success) return 'good';
  return isFinal(status) ? 'neutral' : 'busy';
}

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
