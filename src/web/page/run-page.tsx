import { Router } from 'express';
import type { Child } from 'hono/jsx';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { idIn } from '../../api/parameters.js';
import { may, Permits, withPermit } from '../../api/permissions.js';
import { cut, lengthText } from '../../core/text.js';
import { invocationIdOf } from '../../record/telemetry-record.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { percentText } from '../../run/measures/pace.js';
import { shareOf } from '../../run/measures/time-split.js';
import { labelOf } from '../../run/measures/troubles.js';
import { countsText } from '../../run/words.js';
import { type ArtifactPath, encodedArtifactPath, stepTelemetryOf, telemetryPaths } from '../../storage/artifacts.js';
import type { Manifest } from '../../storage/manifest.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/state-tables.js';
import { sendPage } from './layout.js';
import { LiveBox, type ShownLive, shownLive } from './live-box.js';
import type { PageDeps, TraceViewer } from './page-deps.js';
import type { PageManifests } from './page-manifests.js';
import { countText, Fact, Moment, NumberCell, RunMark, ScrollTable } from './parts.js';
import { MAX_NAME, type RunPageModel, readRunPageModel } from './run-page-model.js';
import { CountsBar, commandOf, RunShell, type ShownRun, shownRun } from './run-shell.js';
import { CriticalPathTable, PaceFacts, TimeBar } from './run-time.js';
import { NodeLink, RunTroubles } from './run-troubles.js';

/** A run with the data of its page. */
interface SeenRun {
  readonly shown: ShownRun;
  readonly model: RunPageModel;
  /** How far it has come; `null` of a run that has ended. */
  readonly live: ShownLive | null;
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly viewers: readonly TraceViewer[];
  /** The destinations to which it can be sent again. */
  readonly destinations: readonly string[];
}

/** The page of a run: what failed and why, then its facts, steps and links. */
function RunPage(props: {
  readonly caller: Caller;
  readonly seen: SeenRun;
  readonly nowUnixMs: number;
  readonly version: string;
}) {
  const { caller, seen, nowUnixMs, version } = props;
  const { shown, model, live, downloads, viewers } = seen;
  const { run, steps, step } = shown;
  const shell = { shown, caller, nowUnixMs, version, redactor: model.redactor };
  const above = (
    <>
      {live === null ? <RunOutcome run={run} model={model} /> : <LiveBox run={run} shown={live} />}
      <RunTroubles model={model} run={run} />
    </>
  );
  return (
    <RunShell {...shell} tab="" above={above}>
      <RunDownload downloads={downloads} step={step} />
      <RunFacts
        run={run}
        statusMessage={model.sections.length > 0 ? model.statusMessage : null}
        steps={steps}
        viewers={viewers}
      />
      <RunTime model={model} />
      <SlowestNodes nodes={model.slowest} lengthNano={model.lengthNano} runId={run.id} />
      <RunSteps steps={steps} model={model} nowUnixMs={nowUnixMs} />
      <MissingArtifacts downloads={downloads} steps={steps} />
      <Documents run={run} caller={caller} destinations={seen.destinations} />
    </RunShell>
  );
}

/** Steps of the critical path that are shown: those that took longest. */
const MAX_STEPS = 12;

/** Shows where the time went; nothing without telemetry. */
function RunTime({ model: { timeParts, pace, lengthNano, lengthMs } }: { readonly model: RunPageModel }) {
  if (lengthNano === 0n) return null;
  return (
    <>
      <section aria-labelledby="time">
        <h2 id="time">Where the {lengthText(lengthMs)} went</h2>
        <TimeBar parts={timeParts} />
        {pace !== null && <PaceFacts pace={pace} />}
      </section>
      {pace !== null && <CriticalPathTable path={pace.path} lengthNano={lengthNano} limit={MAX_STEPS} />}
    </>
  );
}

/** Shows how a run ended in figures, and its status message if no node has the cause. */
function RunOutcome({ run, model }: { readonly run: CatalogRun; readonly model: RunPageModel }) {
  const nodeCount = Object.values(model.counts).reduce((sum, count) => sum + count, 0);
  const text = countsText(model.counts, model.noOpCount);
  return (
    <section class="outcome" aria-label="How it ended">
      {nodeCount > 0 && (
        <>
          <CountsBar counts={model.counts} label={text} />
          <p>
            <span class="strong">{countText(nodeCount, 'node')}</span>: {text}
          </p>
        </>
      )}
      {model.statusMessage !== null && model.sections.length === 0 && (
        <p class={run.status === RUN_STATUS.error ? 'text strong' : 'text soft'}>{model.statusMessage}</p>
      )}
      {!model.hasTelemetry && isFinal(run.status) && (
        <p>Nothing is kept of its telemetry: it sent none, or what was kept was removed.</p>
      )}
    </section>
  );
}

/** Links to the step's telemetry in other forms. */
function RunDownload(props: {
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly step: CatalogStep | null;
}) {
  const { downloads, step } = props;
  if (downloads === null || downloads === 'unreadable' || step === null) return null;
  const ofStep = downloads.filter(({ stepIndex }) => stepIndex === step.index);
  const logs = ofStep.filter(({ path }) => stepTelemetryOf(path) !== undefined);
  const results = ofStep.filter(({ path }) => path === 'run_results.json' || path === 'manifest.json');
  if (logs.length + results.length === 0) return null;
  return (
    <details class="menu" id="download">
      <summary>Download</summary>
      <ul>
        {logs.map(({ href, path }, at) => (
          <li>
            <a href={href} download title={path}>
              Download OTel log{logs.length > 1 ? ` ${at + 1}` : ''} (Parquet)
            </a>
          </li>
        ))}
        {results.map(({ href, path }) => (
          <li>
            <a href={href} download>
              {path}
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Documents(props: {
  readonly run: CatalogRun;
  readonly caller: Caller;
  readonly destinations: readonly string[];
}) {
  const { run, caller, destinations } = props;
  const base = `/api/run-bridge/v1/runs/${run.id}`;
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
      {may(caller, 'jobs:run') && destinations.length > 0 && (
        <form class="actions" method="post" action={`/runs/${run.id}/export`}>
          {destinations.length > 1 && (
            <select name="destination" aria-label="Destination">
              <option value="">all destinations</option>
              {destinations.map((name) => (
                <option value={name}>{name}</option>
              ))}
            </select>
          )}{' '}
          <button type="submit" title="Sends the run from its first record on">
            Send again{destinations.length === 1 ? ` to ${destinations[0]}` : ''}
          </button>
        </form>
      )}
      {may(caller, 'runs:delete') && isFinal(run.status) && (
        <p>
          <a href={`/runs/${run.id}/delete`}>Delete this run</a>
        </p>
      )}
    </section>
  );
}

/** Serves `/runs/{id}`, the page of a run. The hosted platform has it at the same path, for links that clients make or follow (`href`). */
export function runRouter(deps: PageDeps, manifests: PageManifests): Router {
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
    const shown = await shownRun(request, response, deps);
    const { run, steps } = shown;
    // Whole record logs may have to be read, so the number of concurrent requests is limited.
    const manifestOf = (step: CatalogStep) => readManifestOf(step, { caller, run, manifests, deps });
    const reading = () => readRunPageModel(run, steps, caller, { ...deps, manifestOf });
    const model = await withPermit(permits, response, reading, tooMany);
    const live = (await shownLive([run], caller, deps)).get(run.id) ?? null;
    const downloads = await runDownloads(caller, steps, deps);
    const seen = { shown, model, live, downloads, viewers: deps.traceViewers, destinations: deps.destinations ?? [] };
    await sendPage(response, <RunPage caller={caller} seen={seen} nowUnixMs={clock.nowUnixMs()} version={version} />);
  });
  return router;
}

/** Reads the manifest of a step of a run that has ended; `undefined` if there is none, it cannot be read, or the caller may not read it. */
export async function readManifestOf(
  step: CatalogStep,
  of: {
    readonly caller: Caller;
    readonly run: CatalogRun;
    readonly manifests: PageManifests;
    readonly deps: Pick<PageDeps, 'logger'>;
  },
): Promise<Manifest | undefined> {
  const { caller, run, manifests, deps } = of;
  if (!isFinal(run.status) || !may(caller, 'artifacts:read')) return undefined;
  try {
    return (await manifests.of(step)) ?? undefined;
  } catch (error) {
    // The run is shown without it.
    deps.logger.error({ error: String(error) }, 'failed to read a manifest');
    return undefined;
  }
}

/** Returns the message for too many concurrent requests that read whole record logs. */
export function tooMany(reason: string): string {
  return `Too many clients are reading runs at the moment: ${reason}.`;
}

/** A file of a step. */
interface Download {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Path within the step's artifacts, such as `run_results.json`. */
  readonly path: string;
  /** Its URL in the API. */
  readonly href: string;
}

/** The downloads of a run; `null` if the caller may not read them, `unreadable` if the store fails. */
async function runDownloads(
  caller: Caller,
  steps: readonly CatalogStep[],
  { artifacts, logger }: Pick<PageDeps, 'artifacts' | 'logger'>,
): Promise<readonly Download[] | 'unreadable' | null> {
  if (!may(caller, 'artifacts:read')) return null;
  try {
    const lists = await Promise.all(steps.map(async (step) => ({ step, paths: await shownPaths(step, artifacts) })));
    return lists.flatMap(({ step: { accountId, runId, index }, paths }) =>
      paths.map((path) => {
        const href = `/api/v2/accounts/${accountId}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;
        return { stepIndex: index, path, href };
      }),
    );
  } catch (error) {
    // The run is shown without them.
    logger.error({ error: String(error) }, 'failed to list artifacts');
    return 'unreadable';
  }
}

/** Returns the paths of the files that a run's page names; those of all files while they are counted. */
async function shownPaths(step: CatalogStep, artifacts: PageDeps['artifacts']): Promise<readonly ArtifactPath[]> {
  if (step.artifacts?.state === 'uploading') return await artifacts.list(step);
  const { files } = await artifacts.listFolder(step, '');
  return [...files.map(({ path }) => path), ...telemetryPaths(step)];
}

/** The most missing artifacts that are named. */
const MAX_MISSING = 200;

/** Shows which artifacts of a run are missing; the existing ones have a separate page. */
function MissingArtifacts(props: {
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly steps: readonly CatalogStep[];
}) {
  const { downloads, steps } = props;
  if (downloads === null) return null;
  return (
    <>
      {steps.map((step) => (
        <Incomplete step={step} downloads={downloads} hasSeveralSteps={steps.length > 1} />
      ))}
      {downloads === 'unreadable' && <p class="notice bad">Artifacts cannot be listed just now; the log says why.</p>}
    </>
  );
}

/** Shows the progress of uploading a step's artifacts, or the missing ones. */
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

/** Shows what a run belongs to, its times, and what ran it. */
function RunFacts(props: {
  readonly run: CatalogRun;
  readonly statusMessage: string | null;
  readonly steps: readonly CatalogStep[];
  readonly viewers: readonly TraceViewer[];
}) {
  const { run, statusMessage, steps, viewers } = props;
  const words = statusMessage === SAYS_NOTHING ? null : statusMessage;
  return (
    <dl class="facts">
      {[...factsOf(run), ['Ended with', words] as const].map(
        ([name, text]) =>
          text !== null && (
            <Fact isName name={name}>
              {text}
            </Fact>
          ),
      )}
      <Traces steps={steps} viewers={viewers} />
    </dl>
  );
}

/** The engine's message for any failure, which repeats what the page already shows. */
const SAYS_NOTHING = 'Executed with errors';

/** The most traces whose ids are shown; a run has as many as commands. */
const MAX_TRACES = 10;

/** Shows the ids of the telemetry, with links to other programs that show it. */
function Traces({
  steps,
  viewers,
}: {
  readonly steps: readonly CatalogStep[];
  readonly viewers: readonly TraceViewer[];
}) {
  const traceIds = [...new Set(steps.flatMap(({ invocations }) => invocations.map(({ traceId }) => traceId)))];
  if (traceIds.length === 0) return null;
  return (
    <>
      {traceIds.slice(0, MAX_TRACES).map((traceId) => (
        <Fact isName name="Invocation">
          <code>{invocationIdOf(traceId)}</code>
        </Fact>
      ))}
      {traceIds.slice(0, MAX_TRACES).map((traceId) => (
        <Fact isName name="Trace">
          <code>{traceId}</code>
          {viewers.map(({ name, url }) => (
            <>
              {' '}
              <a href={url.replaceAll('{trace_id}', traceId)} rel="noreferrer">
                {name}
              </a>
            </>
          ))}
        </Fact>
      ))}
    </>
  );
}

/** Returns the facts of a run in display order; `null` if unknown. */
function factsOf(run: CatalogRun): readonly (readonly [name: string, text: Child | null])[] {
  const { startedUnixMs, finishedUnixMs, gitSha } = run;
  return [
    ['Environment', run.environment.name],
    ['Project', run.project.name],
    ['Name', run.runKey],
    ['Started by', run.reason],
    [startedUnixMs === null ? 'Created' : 'Started', <Moment unixMs={startedUnixMs ?? run.createdUnixMs} />],
    ['Ended', finishedUnixMs === null ? null : <Moment unixMs={finishedUnixMs} />],
    ['Engine', run.engineVersion],
    ['Branch', run.gitBranch],
    ['Commit', gitSha === null ? null : <code>{gitSha.slice(0, 12)}</code>],
  ];
}

/** Shows the commands of a run. */
function RunSteps(props: {
  readonly steps: readonly CatalogStep[];
  /** The reasons of failed steps, and the redactor for commands. */
  readonly model: Pick<RunPageModel, 'stepMessages' | 'redactor'>;
  readonly nowUnixMs: number;
}) {
  const { steps, model, nowUnixMs } = props;
  const { stepMessages: messages, redactor } = model;
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">{steps.length === 1 ? 'Command' : 'Steps'}</h2>
      {steps.length === 0 && <p class="hint">No command has started yet.</p>}
      {steps.length > 0 && (
        <ScrollTable
          label="Commands in their order"
          columns={[{ number: 'Step' }, 'Command', 'Status', { number: 'Duration' }]}
        >
          {steps.map((step) => (
            <tr>
              <td class="number">{step.index}</td>
              <th scope="row" class="name">
                <code>{redactor.command(cut(commandOf(step), 2_000))}</code>
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

function lengthMsOf({ startedUnixMs, createdUnixMs, finishedUnixMs }: CatalogStep, nowUnixMs: number): number {
  return (finishedUnixMs ?? nowUnixMs) - (startedUnixMs ?? createdUnixMs);
}

/** Shows the nodes that the run's time fell to, the longest first; nothing if no node took any time. */
export function SlowestNodes(props: {
  readonly nodes: readonly NodeMeasure[];
  readonly lengthNano: bigint;
  readonly runId: number;
  /** The unique ids on the critical path, shown as a column. */
  readonly critical?: ReadonlySet<string | null>;
}) {
  const { nodes, lengthNano, runId, critical } = props;
  if (nodes.length === 0) return null;
  return (
    <section aria-labelledby="slowest">
      <h2 id="slowest">Slowest nodes</h2>
      <ScrollTable
        label="Slowest nodes, longest first"
        columns={[
          'Node',
          { number: 'Share' },
          { number: 'Of the run' },
          { number: 'Warehouse' },
          { number: 'Queries' },
          { number: 'Rows' },
          ...(critical === undefined ? [] : ['Critical path']),
        ]}
        isCards
      >
        {nodes.map((node) => (
          <tr>
            <th scope="row" class="name wide">
              <NodeLink runId={runId} uniqueId={node.uniqueId} text={cut(labelOf(node), MAX_NAME)} />
            </th>
            <NumberCell word="share">{lengthText(Number(shareOf(node.share)) / 1e6)}</NumberCell>
            <NumberCell word="of the run">{percentText(shareOf(node.share), lengthNano)}</NumberCell>
            <NumberCell word="warehouse">{lengthText(Number(node.warehouseTimeNano) / 1e6)}</NumberCell>
            <NumberCell word="queries">{node.queryCount.toLocaleString('en')}</NumberCell>
            <NumberCell word="rows">{node.rows === null ? '–' : node.rows.toLocaleString('en')}</NumberCell>
            {critical !== undefined && (
              <td>
                {critical.has(node.uniqueId) && (
                  <>
                    yes<span class="on-card">, on the critical path</span>
                  </>
                )}
              </td>
            )}
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}
