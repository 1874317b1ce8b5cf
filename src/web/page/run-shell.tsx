import type { Request, Response } from 'express';
import type { Child } from 'hono/jsx';
import { ApiError } from '../../api/api-error.js';
import { callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { may } from '../../api/permissions.js';
import { cut, lengthText } from '../../core/text.js';
import type { Redactor } from '../../redaction/redactor.js';
import type { NodeCounts } from '../../run/verdict.js';
import type { CatalogRun, CatalogStep, RunNeighbours } from '../../storage/run-catalog.js';
import { isFinal, parseRunNumber, RUN_STATUS } from '../../storage/state-tables.js';
import { Layout } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { countText, Moment, originText, RunMark, runLengthMs } from './parts.js';

/** The pages of a run, by the end of their URL. */
const TABS = [
  ['', 'Summary', 'runs:read'],
  ['/nodes', 'Nodes', 'runs:read'],
  ['/timeline', 'Timeline', 'runs:read'],
  ['/graph', 'Graph', 'runs:read'],
  ['/logs', 'Logs', 'runs:read'],
  ['/artifacts', 'Artifacts', 'artifacts:read'],
  ['/compare', 'Compare', 'runs:read'],
  ['/deliveries', 'Deliveries', 'webhooks:read'],
] as const;

/** The end of the URL of a run's page. */
export type RunTab = (typeof TABS)[number][0];

/** A run with its steps and the chosen one. */
export interface ShownRun {
  readonly run: CatalogRun;
  readonly steps: readonly CatalogStep[];
  /** The chosen step; `null` if there are no steps. */
  readonly step: CatalogStep | null;
  /** The runs of its job before and after it. */
  readonly neighbours: RunNeighbours;
}

/**
 * Returns the run that a URL names, with `?step=2` as its chosen step; by default the first failed step, else the first.
 * @throws ApiError 404
 */
export async function shownRun(
  request: Request,
  response: Response,
  { catalog }: Pick<PageDeps, 'catalog'>,
): Promise<ShownRun> {
  const { accountId } = callerOf(response);
  const runId = parseRunNumber(String(request.params.runId));
  const run = runId === undefined ? undefined : await catalog.findRun(accountId, runId);
  if (runId === undefined) throw ApiError.notFound();
  if (run === undefined) throw new ApiError(404, `There is no run #${runId} (any more).`);
  const steps = await catalog.stepsOf(accountId, [run.id]);
  const named = steps.find(({ index }) => String(index) === request.query.step);
  const failed = steps.find(({ status }) => status === RUN_STATUS.error);
  const neighbours = await catalog.neighboursOf(run);
  return { run, steps, step: named ?? failed ?? steps[0] ?? null, neighbours };
}

/** The frame of a run's pages: how it ended, and links to its other pages. */
export function RunShell(props: {
  readonly shown: ShownRun;
  readonly tab: RunTab;
  readonly caller: Caller;
  readonly redactor: Pick<Redactor, 'command'>;
  readonly nowUnixMs: number;
  readonly version: string;
  /** Shown between the heading and the tabs. */
  readonly above?: Child;
  readonly scripts?: readonly string[];
  readonly children?: Child;
}) {
  const { shown, tab, caller, redactor, nowUnixMs, version, above, scripts = [], children } = props;
  const { run } = shown;
  const isLive = !isFinal(run.status) && (tab === '' || tab === '/nodes' || tab === '/logs');
  const title = `${run.job.name} #${run.id}`;
  return (
    <Layout title={title} caller={caller} version={version} isLive={isLive} scripts={scripts}>
      <div id="live" {...(isLive && { 'data-live': '2000', 'data-run': String(run.id) })}>
        <div class="run-head">
          <Neighbours of={shown.neighbours} tab={tab} />
          <h1>
            <span class="name">{run.job.name}</span> <span class="soft">#{run.id}</span> <RunMark status={run.status} />
          </h1>
          <HeadLine shown={shown} redactor={redactor} nowUnixMs={nowUnixMs} />
        </div>
        {above}
        <Tabs shown={shown} tab={tab} caller={caller} />
        {children}
      </div>
    </Layout>
  );
}

/** Links to the runs of the job before and after it. */
function Neighbours({ of: { before, after }, tab }: { readonly of: RunNeighbours; readonly tab: RunTab }) {
  if (before === null && after === null) return null;
  return (
    <nav class="neighbours" aria-label="Runs of the job beside it">
      {before !== null && (
        <a href={`/runs/${before}${tab}`} rel="prev" aria-label={`Run before, #${before}`}>
          ← #{before}
        </a>
      )}
      {after !== null && (
        <a href={`/runs/${after}${tab}`} rel="next" aria-label={`Run after, #${after}`}>
          #{after} →
        </a>
      )}
    </nav>
  );
}

/** The longest command line in a heading, in characters. */
const MAX_COMMAND = 300;

function HeadLine(props: {
  readonly shown: ShownRun;
  readonly redactor: Pick<Redactor, 'command'>;
  readonly nowUnixMs: number;
}) {
  const { shown, redactor, nowUnixMs } = props;
  const { run, steps } = shown;
  const lengthMs = runLengthMs(run, nowUnixMs);
  const [step] = steps;
  const command = step === undefined || steps.length > 1 ? '' : redactor.command(cut(commandOf(step), MAX_COMMAND));
  const origin = originText(run);
  return (
    <p class="head-line">
      <span class="strong">{sentenceOf(run, lengthMs === null ? '' : lengthText(lengthMs))}</span>
      {command !== '' && <code class="name">{command}</code>}
      {steps.length > 1 && <span>{countText(steps.length, 'step')}</span>}
      {origin !== '' && <span class="name">{origin}</span>}
      <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} isRelative />
    </p>
  );
}

/** Returns the engine command if there is one, else the command that was started. */
export function commandOf({ command, invocations }: CatalogStep): string {
  const [only, ...others] = invocations;
  const typed = others.length === 0 ? only?.command : null;
  return typed ?? command.join(' ');
}

function sentenceOf({ status }: CatalogRun, length: string): string {
  const after = length === '' ? '' : ` after ${length}`;
  switch (status) {
    case RUN_STATUS.queued:
      return 'Queued';
    case RUN_STATUS.starting:
      return 'Starting; no telemetry yet';
    case RUN_STATUS.running:
      return length === '' ? 'Running' : `Running for ${length}`;
    case RUN_STATUS.success:
      return length === '' ? 'Succeeded' : `Succeeded in ${length}`;
    case RUN_STATUS.error:
      return `Failed${after}`;
    case RUN_STATUS.cancelled:
      return `Canceled${after}`;
  }
}

function Tabs(props: { readonly shown: ShownRun; readonly tab: RunTab; readonly caller: Caller }) {
  const { shown, tab, caller } = props;
  const { run, steps, step } = shown;
  const query = steps.length > 1 && step !== null ? `?step=${step.index}` : '';
  return (
    <div class="tabs">
      <nav aria-label="Pages of this run">
        {TABS.filter(([, , permission]) => may(caller, permission)).map(([path, name]) => (
          <a href={`/runs/${run.id}${path}${query}`} {...(path === tab && { 'aria-current': 'page' })}>
            {name}
          </a>
        ))}
      </nav>
      {steps.length > 1 && (
        <nav aria-label="Steps of this run" class="steps">
          Step{' '}
          {steps.map(({ index }) => (
            <a href={`/runs/${run.id}${tab}?step=${index}`} {...(index === step?.index && { 'aria-current': 'true' })}>
              {index}
            </a>
          ))}
        </nav>
      )}
    </div>
  );
}

/** Verdicts from left to right in a bar, with the CSS classes of their colours. */
const BAR_PARTS = [
  ['success', 'good'],
  ['warned', 'busy'],
  ['failed', 'bad'],
  ['error', 'bad'],
  ['canceled', 'neutral'],
  ['skipped', 'neutral'],
] as const;
const BAR_WIDTH = 1_000;
/** The smallest part of a bar, so that one failure among thousands is visible. */
const MIN_PART = 12;

/**
 * Shows counts of nodes as a bar; nothing if there are none.
 * @param props.label the counts in words
 * @param props.totalCount all that there will be, for a run under way, whose bar fills up
 */
export function CountsBar(props: {
  readonly counts: NodeCounts;
  readonly label: string;
  readonly totalCount?: number;
}) {
  const { counts, label, totalCount = 0 } = props;
  const parts = BAR_PARTS.map(([verdict, mood]) => ({ mood, count: counts[verdict] })).filter(({ count }) => count > 0);
  const doneCount = parts.reduce((all, { count }) => all + count, 0);
  const sum = Math.max(doneCount, totalCount);
  if (sum === 0) return null;
  const widths = parts.map(({ count }) => Math.max(MIN_PART, (count / sum) * BAR_WIDTH));
  const all = widths.reduce((total, width) => total + width, ((sum - doneCount) / sum) * BAR_WIDTH);
  let at = 0;
  return (
    <svg
      class={totalCount > 0 ? 'counts filling' : 'counts'}
      viewBox={`0 0 ${BAR_WIDTH} 8`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {parts.map(({ mood }, index) => {
        const width = ((widths[index] ?? 0) / all) * BAR_WIDTH;
        const x = at;
        at += width;
        return <rect class={mood} x={x.toFixed(1)} width={width.toFixed(1)} height="8" />;
      })}
    </svg>
  );
}
