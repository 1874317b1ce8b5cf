import { type Request, Router } from 'express';
import { authorize, callerOf } from '../../api/authenticator.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { cut, lengthText } from '../../core/text.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { shareOf } from '../../run/measures/time-split.js';
import { labelOf } from '../../run/measures/troubles.js';
import { byVerdict } from '../../run/verdict.js';
import { NO_OP_WORDS, nodeWord } from '../../run/words.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { Fact, Mark, type Mood, Pager, pageNumber } from './parts.js';
import { tooMany } from './run-page.js';
import { MAX_NAME, type PageTrouble, readNodeTrouble } from './run-page-model.js';
import { RunShell, shownRun } from './run-shell.js';
import { NodeLink, TroubleOfRun } from './run-troubles.js';

/** The choices by their word in the URL, with the verdicts that they include. */
const OUTCOMES = {
  bad: ['error', 'failed', 'canceled', 'unfinished'],
  error: ['error'],
  failed: ['failed'],
  warned: ['warned'],
  skipped: ['skipped'],
  success: ['success'],
} as const;
const OUTCOME_WORDS: Readonly<Record<keyof typeof OUTCOMES, string>> = {
  bad: 'anything wrong',
  error: nodeWord('error'),
  failed: nodeWord('failed'),
  warned: nodeWord('warned'),
  skipped: nodeWord('skipped'),
  success: nodeWord('success'),
};

/** The orders of the list: the word in the URL, the heading, the value, and its description. The largest value comes first. */
const SORTS = {
  share: ['Share', ({ share }) => shareOf(share), 'about how much shorter the run would be without the node'],
  wait: ['Wait', ({ idleTimeMs }) => idleTimeMs, 'how long the node waited for others, a thread or a connection'],
  work: [
    'Work',
    ({ durationMs }) => durationMs,
    "the engine's own time of working on it, which overlaps that of others",
  ],
  warehouse: ['Warehouse', ({ warehouseTimeNano }) => warehouseTimeNano, 'how long its queries ran'],
  queries: ['Queries', ({ queryCount }) => queryCount, 'how many queries it ran'],
  rows: ['Rows', ({ rows }) => rows, 'how many rows it wrote, where the engine tells it'],
} as const satisfies Record<string, readonly [string, (node: NodeMeasure) => bigint | number | null, string]>;

/** The columns that are explained below the table. */
const EXPLAINED = ['share', 'wait', 'work', 'warehouse'] as const;

type Sort = keyof typeof SORTS;
const SORT_NAMES = Object.keys(SORTS) as readonly Sort[];

/** Which nodes are shown, and in which order. */
interface NodeFilter {
  readonly outcome: keyof typeof OUTCOMES | null;
  /** A part of a name or a file; empty for all. */
  readonly text: string;
  /** The order: `name` and `status` are ascending; `null` puts failures first, each group in the order of their starts. */
  readonly sort: Sort | 'name' | 'status' | null;
  readonly page: number;
  readonly step: string | null;
}

const MAX_TEXT = 200;
/** The number of nodes on a page. */
const PAGE_SIZE = 100;

function nodeFilter(request: Pick<Request, 'query'>): NodeFilter {
  const { outcome, text, sort, step } = request.query;
  const sorts: readonly string[] = [...SORT_NAMES, 'name', 'status'];
  return {
    outcome:
      typeof outcome === 'string' && Object.hasOwn(OUTCOMES, outcome) ? (outcome as NodeFilter['outcome']) : null,
    text: typeof text === 'string' ? text.trim().slice(0, MAX_TEXT) : '',
    sort: typeof sort === 'string' && sorts.includes(sort) ? (sort as NodeFilter['sort']) : null,
    page: pageNumber(request),
    step: typeof step === 'string' && /^\d{1,9}$/.test(step) ? step : null,
  };
}

function hrefOf(runId: number, filter: NodeFilter): string {
  const { outcome, text, sort, page, step } = filter;
  const parameters = new URLSearchParams({
    ...(step !== null && { step }),
    ...(outcome !== null && { outcome }),
    ...(text !== '' && { text }),
    ...(sort !== null && { sort }),
    ...(page > 1 && { page: String(page) }),
  });
  return `/runs/${runId}/nodes${parameters.size === 0 ? '' : `?${parameters}`}`;
}

const isBad = ({ verdict }: NodeMeasure) => (OUTCOMES.bad as readonly string[]).includes(verdict);

function filtered(nodes: readonly NodeMeasure[], { outcome, text, sort }: NodeFilter): readonly NodeMeasure[] {
  const verdicts: readonly string[] | null = outcome === null ? null : OUTCOMES[outcome];
  const searched = text.toLowerCase();
  const isWanted = ({ verdict, uniqueId, relativePath }: NodeMeasure) =>
    (verdicts === null || verdicts.includes(verdict)) &&
    (searched === '' ||
      uniqueId.toLowerCase().includes(searched) ||
      relativePath?.toLowerCase().includes(searched) === true);
  const wanted = nodes.filter(isWanted);
  if (sort === null) return wanted.sort((a, b) => Number(isBad(b)) - Number(isBad(a)));
  if (sort === 'name') return wanted.sort((a, b) => (a.uniqueId < b.uniqueId ? -1 : 1));
  if (sort === 'status') return wanted.sort(byVerdict);
  const [, value] = SORTS[sort];
  return wanted.sort((a, b) => Number(value(b) ?? -1) - Number(value(a) ?? -1));
}

/** Serves `/runs/{id}/nodes`: all nodes of a step; `?node=` shows one of them above the list. */
export function runNodesRouter(deps: PageDeps): Router {
  const { measures, clock, version } = deps;
  const permits = new Permits('requests for nodes');
  const router = Router();
  router.get('/runs/:runId/nodes', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const { run, steps, step } = shown;
    const redactor = textRedactor(caller, deps.redaction);
    const measured =
      step === null ? [] : await withPermit(permits, response, () => measures.ofSteps([step], redactor), tooMany);
    const filter = nodeFilter(request);
    const named = request.query.node;
    const commands = measured.map(({ command }) => command);
    const node = commands.flatMap(({ nodes }) => nodes).find(({ uniqueId }) => uniqueId === named);
    const command = commands.find(({ nodes }) => nodes.some((one) => one === node));
    const all = commands.flatMap(({ nodes }) => nodes);
    const found = filtered(all, filter);
    const panel =
      node === undefined || command === undefined
        ? null
        : { node, command, trouble: await readNodeTrouble(node, { run, steps, command, redactor }, deps) };
    await sendPage(
      response,
      <RunShell {...{ shown, caller, redactor, version }} tab="/nodes" nowUnixMs={clock.nowUnixMs()}>
        {panel !== null && <NodePanel {...panel} runId={run.id} closeHref={hrefOf(run.id, filter)} />}
        {typeof named === 'string' && node === undefined && (
          <p class="notice">There is no node {cut(named, MAX_NAME)} in this step.</p>
        )}
        {all.length > 0 && <NodeFilterForm runId={run.id} filter={filter} />}
        <section id="found" aria-label="Nodes">
          <NodeTable {...{ filter, found }} runId={run.id} isEmpty={all.length === 0} />
        </section>
      </RunShell>,
    );
  });
  return router;
}

function NodeFilterForm({ runId, filter }: { readonly runId: number; readonly filter: NodeFilter }) {
  return (
    <form method="get" action={`/runs/${runId}/nodes`} class="filter" aria-label="Which nodes" data-typed="#found">
      {filter.step !== null && <input type="hidden" name="step" value={filter.step} />}
      {filter.sort !== null && <input type="hidden" name="sort" value={filter.sort} />}
      <label class="wide">
        Name or file <input type="search" name="text" value={filter.text} maxlength={MAX_TEXT} />
      </label>
      <label>
        Outcome{' '}
        <select name="outcome">
          <option value="">all</option>
          {Object.entries(OUTCOME_WORDS).map(([word, text]) => (
            <option value={word} selected={word === filter.outcome}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function NodeTable(props: {
  readonly runId: number;
  readonly filter: NodeFilter;
  readonly found: readonly NodeMeasure[];
  readonly isEmpty: boolean;
}) {
  const { runId, filter, found, isEmpty } = props;
  const { page } = filter;
  const shown = found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  if (isEmpty) return <p class="empty">No node ran in this step.</p>;
  if (shown.length === 0) {
    return (
      <p class="empty">
        No node is like that. <a href={hrefOf(runId, { ...filter, outcome: null, text: '', page: 1 })}>Show all</a>
      </p>
    );
  }
  const heading = (sort: NonNullable<NodeFilter['sort']>, text: string, isNumber: boolean, title?: string) => (
    <th
      scope="col"
      {...(isNumber && { class: 'number' })}
      {...(filter.sort === sort && { 'aria-sort': isNumber ? 'descending' : 'ascending' })}
    >
      <a
        class={filter.sort === sort ? 'sort on' : 'sort'}
        href={hrefOf(runId, { ...filter, sort, page: 1 })}
        {...(title !== undefined && { title: `${text}: ${title}` })}
      >
        {text}
        {filter.sort === sort && <span aria-hidden="true">{isNumber ? ' ▾' : ' ▴'}</span>}
      </a>
    </th>
  );
  return (
    <>
      <section class="scroll" tabindex={0} aria-label="Nodes of the step">
        <table>
          <thead>
            <tr>
              {heading('name', 'Node', false)}
              {heading('status', 'Status', false)}
              {SORT_NAMES.map((sort) => heading(sort, SORTS[sort][0], true, SORTS[sort][2]))}
            </tr>
          </thead>
          <tbody>
            {shown.map((node) => (
              <NodeRow runId={runId} node={node} />
            ))}
          </tbody>
        </table>
      </section>
      <p class="hint">{EXPLAINED.map((sort) => `${SORTS[sort][0]}: ${SORTS[sort][2]}.`).join(' ')}</p>
      <Pager
        {...{ page, pageSize: PAGE_SIZE, totalCount: found.length, noun: 'node' }}
        words={['Before', 'Next']}
        href={(to) => hrefOf(runId, { ...filter, page: to })}
      />
    </>
  );
}

function NodeRow({ runId, node }: { readonly runId: number; readonly node: NodeMeasure }) {
  const { uniqueId, idleTimeMs, durationMs, warehouseTimeNano, queryCount, rows, share } = node;
  const time = (ms: number | null) => (ms === null || ms === 0 ? '–' : lengthText(ms));
  return (
    <tr>
      <th scope="row" class="name">
        <NodeLink runId={runId} uniqueId={uniqueId} text={cut(labelOf(node), MAX_NAME)} />
      </th>
      <td>
        <VerdictMark node={node} />
      </td>
      <td class="number nowrap">{time(Number(shareOf(share)) / 1e6)}</td>
      <td class="number nowrap">{time(idleTimeMs)}</td>
      <td class="number nowrap">{time(durationMs)}</td>
      <td class="number nowrap">{time(Number(warehouseTimeNano) / 1e6)}</td>
      <td class="number">{queryCount.toLocaleString('en')}</td>
      <td class="number">{rows === null ? '–' : rows.toLocaleString('en')}</td>
    </tr>
  );
}

const MOODS: Readonly<Record<string, Mood>> = {
  success: 'good',
  warned: 'busy',
  failed: 'bad',
  error: 'bad',
  canceled: 'neutral',
  skipped: 'neutral',
  unfinished: 'busy',
};

/** Shows how a node ended. */
export function VerdictMark({ node: { verdict, skipReason } }: { readonly node: NodeMeasure }) {
  const word = verdict === 'skipped' && skipReason === 'noop' ? NO_OP_WORDS[0] : nodeWord(verdict);
  return <Mark word={word} mood={MOODS[verdict] ?? 'neutral'} />;
}

/** Whether a node is a test, whose row count is that of its failures and not shown as rows. */
function isTest({ uniqueId, testOutcome, failingRows }: NodeMeasure): boolean {
  return testOutcome !== null || failingRows !== null || /^(?:unit_)?test\./.test(uniqueId);
}

/** Shows everything that is known about a node. */
function NodePanel(props: {
  readonly node: NodeMeasure;
  readonly command: CommandMeasures;
  readonly trouble: PageTrouble | null;
  readonly runId: number;
  readonly closeHref: string;
}) {
  const { node, command, trouble, runId, closeHref } = props;
  const { startTimeUnixNano } = command.invocation;
  return (
    <section class="panel" aria-labelledby="node">
      <h2 id="node" class="name">
        {cut(labelOf(node), MAX_NAME)} <VerdictMark node={node} />
      </h2>
      <p class="hint name">{cut(node.uniqueId, MAX_NAME)}</p>
      {trouble !== null && <TroubleOfRun trouble={trouble} run={{ id: runId }} severity="error" id="trouble" isNamed />}
      {trouble === null && node.skipUpstream !== null && (
        <p class="name">
          Skipped because of{' '}
          <NodeLink runId={runId} uniqueId={node.skipUpstream} text={cut(node.skipUpstream, MAX_NAME)} />
        </p>
      )}
      <dl class="facts">
        {node.relativePath !== null && trouble?.location == null && (
          <Fact isName name="File">
            <code>{cut(node.relativePath, MAX_NAME)}</code>
          </Fact>
        )}
        {node.group !== null && (
          <Fact isName name="Group">
            {cut(node.group, MAX_NAME)}
          </Fact>
        )}
        {node.phases.map((phase) => (
          <Fact name={phase.phase.toLowerCase()}>
            {phase.lifetimeNano === null ? 'did not end' : lengthText(Number(phase.lifetimeNano) / 1e6)}
            <span class="sub">from {lengthText(Number(phase.startTimeUnixNano - startTimeUnixNano) / 1e6)} on</span>
          </Fact>
        ))}
        {node.idleTimeMs !== null && node.idleTimeMs > 0 && <Fact name="Waiting">{lengthText(node.idleTimeMs)}</Fact>}
        <Fact name="Warehouse">{lengthText(Number(node.warehouseTimeNano) / 1e6)}</Fact>
        <Fact name="Queries">{node.queryCount.toLocaleString('en')}</Fact>
        {node.rows !== null && !isTest(node) && <Fact name="Rows">{node.rows.toLocaleString('en')}</Fact>}
      </dl>
      <p>
        <a href={closeHref}>Close</a>
      </p>
    </section>
  );
}
