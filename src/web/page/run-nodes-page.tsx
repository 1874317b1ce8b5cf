import { type Request, Router } from 'express';
import type { Child } from 'hono/jsx';
import { authorize, callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { cut, lengthText } from '../../core/text.js';
import type { Redactor } from '../../redaction/redactor.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { shareOf } from '../../run/measures/time-split.js';
import { labelOf } from '../../run/measures/troubles.js';
import { byVerdict, type NodeVerdict } from '../../run/verdict.js';
import { NO_OP_WORDS, nodeWord } from '../../run/words.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { Mark, type Mood, NumberCell, Pager, pageNumber } from './parts.js';
import { tooMany } from './run-page.js';
import { MAX_NAME } from './run-page-model.js';
import { RunShell, type ShownRun, shownRun } from './run-shell.js';

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

function hrefOf(runId: number, filter: NodeFilter, node?: NodeMeasure): string {
  const { outcome, text, sort, page, step } = filter;
  const parameters = new URLSearchParams({
    ...(step !== null && { step }),
    ...(outcome !== null && { outcome }),
    ...(text !== '' && { text }),
    ...(sort !== null && { sort }),
    ...(page > 1 && { page: String(page) }),
    ...(node !== undefined && { node: node.uniqueId.toWellFormed() }),
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

/** Reads and shows a node beside the list. */
export type PanelOf = (of: {
  readonly node: NodeMeasure;
  readonly command: CommandMeasures;
  readonly shown: ShownRun;
  readonly step: CatalogStep;
  readonly caller: Caller;
  readonly redactor: Redactor;
  /** The address of the list without it. */
  readonly closeHref: string;
}) => Promise<Child>;

/** Serves `/runs/{id}/nodes`: all nodes of a step; `?node=` shows one of them beside the list. */
export function runNodesRouter(deps: PageDeps, panelOf: PanelOf): Router {
  const { measures, clock, version } = deps;
  const permits = new Permits('requests for nodes');
  const router = Router();
  router.get('/runs/:runId/nodes', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const { run, step } = shown;
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
    const closeHref = hrefOf(run.id, filter);
    const panel =
      node === undefined || command === undefined || step === null
        ? null
        : await withPermit(
            permits,
            response,
            () => panelOf({ node, command, shown, step, caller, redactor, closeHref }),
            tooMany,
          );
    await sendPage(
      response,
      <RunShell {...{ shown, caller, redactor, version }} tab="/nodes" nowUnixMs={clock.nowUnixMs()}>
        <div id="nodes" {...(panel !== null && { class: 'beside' })}>
          {panel}
          {typeof named === 'string' && node === undefined && (
            <p class="notice">There is no node {cut(named, MAX_NAME)} in this step.</p>
          )}
          <div>
            {all.length > 0 && <NodeFilterForm runId={run.id} filter={filter} chosen={node} />}
            <section id="found" aria-label="Nodes">
              <NodeTable {...{ filter, found }} chosen={node} runId={run.id} isEmpty={all.length === 0} />
            </section>
          </div>
        </div>
      </RunShell>,
    );
  });
  return router;
}

function NodeFilterForm(props: {
  readonly runId: number;
  readonly filter: NodeFilter;
  readonly chosen: NodeMeasure | undefined;
}) {
  const { runId, filter, chosen } = props;
  return (
    <form method="get" action={`/runs/${runId}/nodes`} class="filter" aria-label="Which nodes" data-typed="#found">
      {filter.step !== null && <input type="hidden" name="step" value={filter.step} />}
      {filter.sort !== null && <input type="hidden" name="sort" value={filter.sort} />}
      {chosen !== undefined && <input type="hidden" name="node" value={chosen.uniqueId} />}
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
  readonly chosen: NodeMeasure | undefined;
  readonly isEmpty: boolean;
}) {
  const { runId, filter, found, chosen, isEmpty } = props;
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
      <section class="scroll cards sorted" tabindex={0} aria-label="Nodes of the step">
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
              <NodeRow href={hrefOf(runId, filter, node)} node={node} isChosen={node === chosen} />
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

function NodeRow(props: { readonly href: string; readonly node: NodeMeasure; readonly isChosen: boolean }) {
  const { href, node, isChosen } = props;
  const { uniqueId, idleTimeMs, durationMs, warehouseTimeNano, queryCount, rows, share } = node;
  const time = (ms: number | null) => (ms === null || ms === 0 ? '–' : lengthText(ms));
  return (
    <tr {...(isChosen && { class: 'chosen' })}>
      <th scope="row" class="name wide">
        <a
          href={href}
          title={uniqueId}
          class="quiet-link"
          data-panel="open"
          {...(isChosen && { 'aria-current': 'true' })}
        >
          {cut(labelOf(node), MAX_NAME)}
        </a>
      </th>
      <td>
        <VerdictMark node={node} />
      </td>
      <NumberCell word="share">{time(Number(shareOf(share)) / 1e6)}</NumberCell>
      <NumberCell word="wait">{time(idleTimeMs)}</NumberCell>
      <NumberCell word="work">{time(durationMs)}</NumberCell>
      <NumberCell word="warehouse">{time(Number(warehouseTimeNano) / 1e6)}</NumberCell>
      <NumberCell word="queries">{queryCount.toLocaleString('en')}</NumberCell>
      <NumberCell word="rows">{rows === null ? '–' : rows.toLocaleString('en')}</NumberCell>
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

/** Returns the color of a verdict. */
export function verdictMood(verdict: NodeVerdict): Mood {
  return MOODS[verdict] ?? 'neutral';
}

/** Shows how a node ended. */
export function VerdictMark({ node: { verdict, skipReason } }: { readonly node: NodeMeasure }) {
  const word = verdict === 'skipped' && skipReason === 'noop' ? NO_OP_WORDS[0] : nodeWord(verdict);
  return <Mark word={word} mood={verdictMood(verdict)} />;
}
