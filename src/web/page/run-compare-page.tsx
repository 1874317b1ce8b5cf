import { type Request, Router } from 'express';
import type { Child } from 'hono/jsx';
import { authorize, callerOf } from '../../api/authenticator.js';
import { isComparable, lastRunBefore } from '../../api/earlier-runs.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { groupBy } from '../../core/lists.js';
import { cleanLine, cut, lengthText } from '../../core/text.js';
import type { Redactor } from '../../redaction/redactor.js';
import {
  type CommandComparison,
  compareRuns,
  contentionText,
  type NodePair,
  type RunComparison,
  shareMs,
} from '../../run/measures/compare-commands.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { type CommandScope, isSameProject, scopeOf } from '../../run/measures/run-scope.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { labelOf, readableLines } from '../../run/measures/troubles.js';
import { commandLengthMs } from '../../run/verdict.js';
import { countsText, RUN_WORDS } from '../../run/words.js';
import type { CatalogRun, RunQuery } from '../../storage/run-catalog.js';
import { isFinal, parseRunNumber, RUN_STATUS } from '../../storage/state-tables.js';
import { DEFAULT_JOB } from '../../storage/steps.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { type Column, countText, Moment, RunMark, ScrollTable } from './parts.js';
import { VerdictMark } from './run-nodes-page.js';
import { tooMany } from './run-page.js';
import { MAX_NAME } from './run-page-model.js';
import { CountsBar, RunShell, type ShownRun, shownRun } from './run-shell.js';
import { NodeLink } from './run-troubles.js';

/** The most runs of the job that can be chosen, and of the rest of its project. */
const MAX_CHOICES = 30;
/** The most nodes of a kind that are shown at once, and that are listed. */
const MAX_OPEN = 20;
const MAX_LISTED = 300;
const MAX_CAUSE = 300;

/** The runs with which one can be compared, the latest first, and the chosen one. */
interface Choices {
  readonly ofJob: readonly CatalogRun[];
  readonly ofProject: readonly CatalogRun[];
  /** The chosen run; `null` if there is none, or the URL names one that does not exist. */
  readonly base: CatalogRun | null;
}

/** Serves `/runs/{id}/compare`: the differences from another run, `?with=`; by default the last successful run of its job before it. */
export function runCompareRouter(deps: PageDeps): Router {
  const { measures, catalog, redaction, clock, version } = deps;
  const permits = new Permits('requests for comparisons');
  const router = Router();
  router.get('/runs/:runId/compare', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const { run, steps } = shown;
    const redactor = textRedactor(caller, redaction);
    const { choices, found } = await withPermit(
      permits,
      response,
      async () => {
        const after = await measures.ofSteps(steps, redactor);
        const scopes = after.map(({ command }) => scopeOf(command));
        const chosen = await findChoices({ run, scopes }, request, deps);
        if (chosen.base === null) return { choices: chosen, found: null };
        const before = await measures.ofSteps(await catalog.stepsOf(run.accountId, [chosen.base.id]));
        return { choices: chosen, found: { before, after } };
      },
      tooMany,
    );
    const { base } = choices;
    const comparison =
      found === null
        ? null
        : compareRuns(
            found.before.map(({ command }) => command),
            found.after.map(({ command }) => command),
          );
    const isOfStep = isOfChosenStep(found?.after ?? [], shown);
    await sendPage(
      response,
      <RunShell {...{ shown, caller, redactor, version }} tab="/compare" nowUnixMs={clock.nowUnixMs()}>
        <ChoiceForm {...{ shown, choices }} named={request.query.with} />
        {base !== null && comparison !== null && <Differences {...{ shown, base, redactor, isOfStep, comparison }} />}
      </RunShell>,
    );
  });
  return router;
}

type Measured = Awaited<ReturnType<PageDeps['measures']['ofSteps']>>;

/** Returns a function that tells whether a command belongs to the chosen step; commands are paired across the whole run. */
function isOfChosenStep(measured: Measured, { step }: ShownRun): (command: CommandMeasures) => boolean {
  const ofStep = new Set(step?.invocations.map(({ traceId, index }) => `${traceId} ${index}`));
  const commands = new Set(
    measured
      .filter(({ traceId, command }) => ofStep.has(`${traceId} ${command.invocation.index}`))
      .map(({ command }) => command),
  );
  return (command) => commands.has(command);
}

/** A run with the scopes of its commands. */
interface ScopedRun {
  readonly run: CatalogRun;
  readonly scopes: readonly CommandScope[];
}

/** Finds the runs to choose from. @throws StoreError; errors of the reader if an earlier run has to be measured */
async function findChoices(
  scoped: ScopedRun,
  request: Pick<Request, 'query'>,
  { catalog, measures }: Pick<PageDeps, 'catalog' | 'measures'>,
): Promise<Choices> {
  const { run } = scoped;
  const named = request.query.with;
  const list = async (filter: Partial<RunQuery>) => {
    const latest = { orderBy: 'created', isDescending: true, limit: MAX_CHOICES + 1, offset: 0 } as const;
    const { items } = await catalog.listRuns(run.accountId, { ...latest, ...filter });
    return items.filter(({ id }) => id !== run.id);
  };
  const listed = await list({ projectIds: [run.project.id], jobId: run.job.id });
  const others = (await list({ projectIds: [run.project.id] })).filter(({ job }) => job.id !== run.job.id);
  const ofJob: CatalogRun[] = [];
  const ofProject: CatalogRun[] = [];
  const steps = groupBy(
    await catalog.stepsOf(
      run.accountId,
      [...listed, ...others].map(({ id }) => id),
    ),
    ({ runId }) => runId,
  );
  for (const one of [...listed, ...others]) {
    const digests = await measures.digestsOf(steps.get(one.id) ?? []);
    // A run that is in progress or was never measured is not excluded for what is unknown.
    const other = { run: one, scopes: digests?.map(({ scope }) => scope) ?? scoped.scopes };
    if (isComparable(scoped, other)) ofJob.push(one);
    else if (isSameProject(scoped.scopes, other.scopes)) ofProject.push(one);
  }
  if (typeof named === 'string' && named !== '') {
    const id = parseRunNumber(named);
    const base = id === undefined ? undefined : await catalog.findRun(run.accountId, id);
    return { ofJob, ofProject, base: base ?? null };
  }
  const before = (statuses?: readonly number[]) =>
    lastRunBefore(scoped, { measuresNow: true, statuses }, { catalog, measures });
  const base = (await before([RUN_STATUS.success])) ?? (await before());
  return { ofJob, ofProject, base };
}

function ChoiceForm(props: { readonly shown: ShownRun; readonly choices: Choices; readonly named: unknown }) {
  const { shown, choices, named } = props;
  const { run, steps, step } = shown;
  const { ofJob, ofProject, base } = choices;
  const isListed = [...ofJob, ...ofProject].some(({ id }) => id === base?.id);
  const option = (one: CatalogRun) => (
    <option value={String(one.id)} selected={one.id === base?.id}>
      {`#${one.id} ${RUN_WORDS[one.status]}, ${one.job.id === run.job.id ? '' : `${cut(one.job.name, 60)}, `}${new Date(one.createdUnixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`}
    </option>
  );
  return (
    <>
      <form method="get" action={`/runs/${run.id}/compare`} class="filter" aria-label="The other run">
        {steps.length > 1 && step !== null && <input type="hidden" name="step" value={String(step.index)} />}
        <label class="wide">
          Compare with
          <select name="with">
            {base === null && <option value="">the last run that did well</option>}
            {base !== null && !isListed && option(base)}
            {ofJob.length > 0 && (
              <optgroup label={run.job.name === DEFAULT_JOB ? 'Runs of this command and target' : 'Runs of this job'}>
                {ofJob.map(option)}
              </optgroup>
            )}
            {ofProject.length > 0 && <optgroup label="Other runs of this project">{ofProject.map(option)}</optgroup>}
          </select>
        </label>
        <button type="submit">Compare</button>
      </form>
      {base === null && (
        <p class="empty">
          {typeof named === 'string' && named !== ''
            ? `There is no run ${cut(named, 40)}.`
            : 'There is no earlier run of this job with the same command, or of this command and target. Choose another one, or name it in the address: ?with=1042.'}
        </p>
      )}
    </>
  );
}

function Differences(props: {
  readonly shown: ShownRun;
  readonly base: CatalogRun;
  readonly redactor: Redactor;
  readonly isOfStep: (command: CommandMeasures) => boolean;
  readonly comparison: RunComparison;
}) {
  const { shown, base, redactor, isOfStep, comparison } = props;
  const { run } = shown;
  const pairs = comparison.pairs.filter(({ after }) => isOfStep(after));
  const alone = (commands: readonly CommandMeasures[], one: CatalogRun) =>
    commands.map(({ invocation }) => (
      <p class="notice">
        Only #{one.id} has{' '}
        <code class="name">
          {redactor.command(cut(invocation.rawCommand ?? invocation.command ?? 'a command', MAX_NAME))}
        </code>
      </p>
    ));
  return (
    <>
      {!isFinal(run.status) && (
        <p class="notice">This run has not ended: nodes that it has not worked on yet are left out.</p>
      )}
      {pairs.map((pair, at) => (
        <Pair {...{ run, base, redactor, at }} pair={isFinal(run.status) ? pair : soFar(pair)} />
      ))}
      {alone(comparison.added.filter(isOfStep), run)}
      {alone(comparison.gone, base)}
      {pairs.length === 0 && <p class="empty">The two runs have no command in common, or nothing is kept of one.</p>}
    </>
  );
}

/** Removes nodes that have no result yet. */
function soFar(pair: CommandComparison): CommandComparison {
  return { ...pair, gone: [], changed: pair.changed.filter(({ after }) => after.verdict !== 'unfinished') };
}

function Pair(props: {
  readonly pair: CommandComparison;
  readonly run: CatalogRun;
  readonly base: CatalogRun;
  readonly redactor: Redactor;
  readonly at: number;
}) {
  const { pair, run, base, redactor, at } = props;
  const { before, after, longerMs, leastMs, changed, slower, faster, added, gone } = pair;
  const heads = [`#${base.id}`, `#${run.id}`] as const;
  const hasCode = codeOf(base) + codeOf(run) !== '';
  const isSame = changed.length + slower.length + faster.length + added.length + gone.length === 0;
  const link = (node: NodeMeasure, runId = run.id) => (
    <th scope="row" class="name">
      <NodeLink runId={runId} uniqueId={node.uniqueId} text={cut(labelOf(node), MAX_NAME)} />
    </th>
  );
  const timeRow = ({ after: is, beforeMs, afterMs, longerMs: ms }: NodePair) => (
    <tr>
      {link(is)}
      <td class="number nowrap strong">{signed(ms)}</td>
      <td class="number nowrap">{lengthText(beforeMs)}</td>
      <td class="number nowrap">{lengthText(afterMs)}</td>
    </tr>
  );
  const times: readonly Column[] = ['Node', { number: 'Difference' }, ...heads.map((number) => ({ number }))];
  const nodeRow = (runId: number) => (node: NodeMeasure) => (
    <tr>
      {link(node, runId)}
      <td>
        <VerdictMark node={node} />
      </td>
      <td class="number nowrap">{lengthText(shareMs(node))}</td>
    </tr>
  );
  const nodeColumns: readonly Column[] = ['Node', 'Status', { number: 'Share of the run' }];
  const contention = contentionText(pair.contention);
  return (
    <section aria-label={`Command ${at + 1}`}>
      <p>
        {lengthSentence(longerMs, heads[0])}{' '}
        {isSame && `Every node ended as before, and none took ${lengthText(leastMs)} more or less of the run's time.`}
      </p>
      {contention !== null && (
        <p class="hint">
          Compared is the share of the run's time that each node took; less than {lengthText(leastMs)} counts as none.{' '}
          {contention}
        </p>
      )}
      <ScrollTable
        label="Both runs"
        columns={['Run', 'Status', { number: 'Duration' }, 'Nodes', ...(hasCode ? ['Engine and code'] : [])]}
        isCards
      >
        <RunRow run={base} command={before} hasCode={hasCode} />
        <RunRow run={run} command={after} hasCode={hasCode} />
      </ScrollTable>
      <Group
        id={`changed-${at}`}
        title="Ended otherwise"
        columns={['Node', ...heads, 'Why']}
        rows={changed.map(({ before: was, after: is }) => (
          <tr>
            {link(is)}
            <td>
              <VerdictMark node={was} />
            </td>
            <td>
              <VerdictMark node={is} />
            </td>
            <td class="text roomy">{causeOf(is, redactor)}</td>
          </tr>
        ))}
      />
      <Group id={`slower-${at}`} title="Slower" columns={times} rows={slower.map(timeRow)} />
      <Group id={`added-${at}`} title="New" columns={nodeColumns} rows={added.map(nodeRow(run.id))} />
      <Group id={`gone-${at}`} title="Gone" columns={nodeColumns} rows={gone.map(nodeRow(base.id))} />
      <Group id={`faster-${at}`} title="Faster" columns={times} rows={faster.map(timeRow)} isClosed />
    </section>
  );
}

function RunRow(props: { readonly run: CatalogRun; readonly command: CommandMeasures; readonly hasCode: boolean }) {
  const { run, command, hasCode } = props;
  const { totals, invocation } = command;
  const words = countsText(totals.nodeCounts, totals.noOpCount);
  return (
    <tr>
      <th scope="row" class="nowrap">
        <a href={`/runs/${run.id}`}>#{run.id}</a>
        <span class="sub">
          <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
        </span>
      </th>
      <td>
        <RunMark status={run.status} />
      </td>
      <td class="number nowrap">{lengthText(commandLengthMs(invocation))}</td>
      <td class="wide">
        <CountsBar counts={totals.nodeCounts} label={words} />
        {words}
      </td>
      {hasCode && <td class="name">{codeOf(run)}</td>}
    </tr>
  );
}

/** Returns the engine's version and the commit, as far as they are known. */
function codeOf({ engineVersion, gitBranch, gitSha }: CatalogRun): string {
  const code = [gitBranch, gitSha === null ? null : gitSha.slice(0, 7)].filter((part) => part !== null).join('@');
  return cut([engineVersion ?? '', code].filter((part) => part !== '').join(', '), MAX_NAME);
}

/** Shows nodes of one kind; nothing if there are none. */
function Group(props: {
  readonly id: string;
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Child[];
  /** Whether all of them are hidden until a click. */
  readonly isClosed?: boolean;
}) {
  const { id, title, columns, rows, isClosed = false } = props;
  if (rows.length === 0) return null;
  const open = isClosed ? [] : rows.slice(0, MAX_OPEN);
  const folded = rows.slice(open.length, MAX_LISTED);
  const omitted = rows.length - open.length - folded.length;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>
        {title} <span class="soft">{rows.length.toLocaleString('en')}</span>
      </h2>
      {open.length > 0 && (
        <ScrollTable label={title} columns={columns}>
          {open}
        </ScrollTable>
      )}
      {folded.length > 0 && (
        <details>
          <summary>{isClosed ? 'Show them' : countText(folded.length + omitted, 'more', 'more')}</summary>
          <ScrollTable label={`${title}, further ones`} columns={columns}>
            {folded}
          </ScrollTable>
          {omitted > 0 && <p class="hint">and {omitted.toLocaleString('en')} more</p>}
        </details>
      )}
    </section>
  );
}

function causeOf(node: NodeMeasure, redactor: Redactor): string {
  if (node.verdict === 'success') return '';
  if (node.skipUpstream !== null) return `because of ${cut(redactor.byPolicy('name', node.skipUpstream), MAX_NAME)}`;
  const [cause = ''] = node.message === null ? [] : readableLines(redactor.text(node.message));
  return cut(cleanLine(cause), MAX_CAUSE);
}

function lengthSentence(longerMs: number, base: string): string {
  if (Math.abs(longerMs) < 0.5) return `It took as long as ${base}.`;
  return `It took ${lengthText(Math.abs(longerMs))} ${longerMs < 0 ? 'less' : 'more'} than ${base}.`;
}

/** Formats a difference: `+4.1 s`, `−312 ms`. */
function signed(ms: number): string {
  return `${ms < 0 ? '−' : '+'}${lengthText(Math.abs(ms))}`;
}
