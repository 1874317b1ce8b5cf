import { type Request, Router } from 'express';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { Permits, withPermit } from '../api/permissions.js';
import type { RunMeasures } from '../api/run-measures.js';
import type { Clock } from '../core/clock.js';
import { groupBy } from '../core/lists.js';
import { lengthText } from '../core/text.js';
import { isBad } from '../run/measures/execution.js';
import { nodeWord } from '../run/words.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { Layout, sendPage } from '../web/page/layout.js';
import {
  type Column,
  countText,
  Fact,
  Mark,
  Moment,
  type Mood,
  Pager,
  pageNumber,
  ScrollTable,
} from '../web/page/parts.js';
import { type Histories, historiesOf, type NodeHistory, type NodeRun, WINDOW_MS } from './node-history.js';

/** The settings of the page. */
export interface HistoryConfig {
  readonly 'warehouse-price': { readonly perHour: number; readonly currency: string } | 'off';
}

/** Dependencies of the page. */
export interface HistoryHost {
  readonly state: { readonly catalog: Pick<RunCatalog, 'listRuns' | 'stepsOf'> };
  readonly measures: Pick<RunMeasures, 'digestsOf'>;
  readonly clock: Clock;
  /** The program's version. */
  readonly version: string;
}

/** The number of an account's latest runs that are read. */
const MAX_RUNS = 300;
/** The number of models and tests on a page, and of runs of one. */
const PAGE_SIZE = 100;

/** Serves `/models`, the histories of models and tests, and `/models?node=` for one of them. */
export function historyPages(config: HistoryConfig, { state, measures, clock, version }: HistoryHost): Router {
  const permits = new Permits('requests for histories');
  const router = Router();
  router.get('/models', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const nowUnixMs = clock.nowUnixMs();
    const { histories, unmeasuredCount } = await withPermit(permits, response, () => read(caller.accountId, nowUnixMs));
    const shown = { caller, histories, unmeasuredCount, price: config['warehouse-price'], nowUnixMs, version };
    const { node } = request.query;
    if (typeof node === 'string') {
      const all = histories.nodes.filter(({ uniqueId }) => uniqueId === node);
      const found = all.find(({ scope }) => scope === request.query.in) ?? all[0];
      await sendPage(response, <NodePage {...shown} node={found} all={all} />, found === undefined ? 404 : 200);
      return;
    }
    await sendPage(response, <ModelsPage {...shown} filter={filterIn(request)} />);
  });
  return router;

  async function read(accountId: number, nowUnixMs: number) {
    const { items } = await state.catalog.listRuns(accountId, {
      statuses: [RUN_STATUS.success, RUN_STATUS.error, RUN_STATUS.cancelled],
      ...{ orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 },
    });
    const ids = items.map(({ id }) => id);
    const steps = groupBy(await state.catalog.stepsOf(accountId, ids), ({ runId }) => runId);
    const runs = [];
    for (const run of items) {
      const digests = await measures.digestsOf(steps.get(run.id) ?? []);
      if (digests !== undefined) runs.push({ run, digests });
    }
    return { histories: historiesOf(runs, nowUnixMs), unmeasuredCount: items.length - runs.length };
  }
}

/** The views of models and tests by their name in the URL: a title, a filter and an order. */
const VIEWS = {
  slowest: { title: 'Slowest', has: ({ usualMs }) => usualMs !== null, by: ({ usualMs }) => usualMs ?? 0 },
  growing: { title: 'Growing', has: ({ grownMs }) => (grownMs ?? 0) > 0, by: ({ grownMs }) => grownMs ?? 0 },
  failing: { title: 'Failing', has: ({ failuresInARow }) => failuresInARow > 0, by: (node) => node.failuresInARow },
  flaky: { title: 'Flaky tests', has: ({ isTest, isFlaky }) => isTest && isFlaky, by: (node) => node.failureCount },
  dearest: { title: 'Cost', has: ({ warehouseMs }) => warehouseMs > 0, by: ({ warehouseMs }) => warehouseMs },
  idle: { title: 'Not run in 30 days', has: () => false, by: lastUnixMs },
} as const satisfies Record<string, View>;

interface View {
  readonly title: string;
  readonly has: (node: NodeHistory) => boolean;
  /** The order; the largest value comes first. */
  readonly by: (node: NodeHistory) => number;
}
type ViewName = keyof typeof VIEWS;

const VIEW_NAMES = Object.keys(VIEWS).filter((name): name is ViewName => Object.hasOwn(VIEWS, name));

function lastUnixMs(node: NodeHistory): number {
  return node.lastUnixMs;
}

function hrefOfNode({ uniqueId, scope, isOneOfSeveral }: NodeHistory): string {
  return `/models?${new URLSearchParams({ node: uniqueId, ...(isOneOfSeveral && { in: scope }) })}`;
}

interface Filter {
  readonly view: ViewName;
  /** A part of the label; empty for all. */
  readonly text: string;
  /** The page number, from 1. */
  readonly page: number;
}

const MAX_TEXT_LENGTH = 200;

function filterIn(request: Pick<Request, 'query'>): Filter {
  const { view, text } = request.query;
  return {
    view: VIEW_NAMES.find((name) => name === view) ?? 'slowest',
    text: typeof text === 'string' ? text.trim().slice(0, MAX_TEXT_LENGTH) : '',
    page: pageNumber(request),
  };
}

function hrefOf({ view, text, page }: Filter): string {
  const query = {
    ...(view !== 'slowest' && { view }),
    ...(text !== '' && { text }),
    ...(page > 1 && { page: String(page) }),
  };
  const parameters = new URLSearchParams(query);
  return parameters.size === 0 ? '/models' : `/models?${parameters}`;
}

interface Shown {
  readonly caller: Caller;
  readonly histories: Histories;
  /** The number of runs that are being measured now, for the next request. */
  readonly unmeasuredCount: number;
  readonly price: HistoryConfig['warehouse-price'];
  readonly nowUnixMs: number;
  readonly version: string;
}

function ModelsPage({ filter, ...shown }: Shown & { readonly filter: Filter }) {
  const { caller, histories, unmeasuredCount, price, nowUnixMs, version } = shown;
  const { view, text, page } = filter;
  const { by } = VIEWS[view];
  const wanted = text.toLowerCase();
  const isIdle = (node: NodeHistory) => lastUnixMs(node) < nowUnixMs - WINDOW_MS;
  const found = histories.nodes
    .filter((node) => (view === 'idle' ? isIdle(node) : VIEWS[view].has(node)))
    .filter(({ label, uniqueId }) => `${label}\n${uniqueId}`.toLowerCase().includes(wanted))
    .sort((a, b) => by(b) - by(a) || (a.uniqueId < b.uniqueId ? -1 : 1));
  const rows = found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <Layout title="Models and tests" caller={caller} version={version} isLive={unmeasuredCount > 0}>
      <h1>Models and tests</h1>
      <div class="tabs">
        <nav aria-label="Which models and tests">
          {VIEW_NAMES.map((name) => (
            <a href={hrefOf({ view: name, text, page: 1 })} {...(name === view && { 'aria-current': 'page' })}>
              {VIEWS[name].title}
            </a>
          ))}
        </nav>
      </div>
      <form method="get" action="/models" class="filter" aria-label="Which models and tests">
        {view !== 'slowest' && <input type="hidden" name="view" value={view} />}
        <label class="wide">
          Name <input type="search" name="text" value={text} maxlength={MAX_TEXT_LENGTH} />
        </label>
        <button type="submit">Show</button>
      </form>
      <div id="live" {...(unmeasuredCount > 0 && { 'data-live': '3000' })}>
        <Known histories={histories} unmeasuredCount={unmeasuredCount} />
        {view === 'dearest' && histories.jobs.length > 0 && <JobCosts histories={histories} price={price} />}
        {rows.length === 0 && histories.runCount > 0 && <p class="empty">No model or test is like that.</p>}
        {rows.length > 0 && <NodeTable nodes={rows} price={price} isWithCost={view === 'dearest'} />}
        {found.length > PAGE_SIZE && (
          <Pager
            {...{
              page,
              pageSize: PAGE_SIZE,
              totalCount: found.length,
              noun: 'model or test',
              words: ['Before', 'After'],
            }}
            href={(at) => hrefOf({ ...filter, page: at })}
          />
        )}
      </div>
    </Layout>
  );
}

/** Shows which runs were read. */
function Known({ histories, unmeasuredCount }: Pick<Shown, 'histories' | 'unmeasuredCount'>) {
  const { runCount, sinceUnixMs } = histories;
  if (runCount === 0 && unmeasuredCount === 0) {
    return (
      <section class="empty">
        <p>No run has ended yet. Each run adds to the history of its models and tests:</p>
        <pre class="command" tabindex={0}>
          run-bridge exec -- dbt build
        </pre>
      </section>
    );
  }
  return (
    <p class="hint">
      From the last {countText(runCount, 'run')}
      {sinceUnixMs !== null && (
        <>
          , since <Moment unixMs={sinceUnixMs} />
        </>
      )}
      .{unmeasuredCount > 0 && ` ${countText(unmeasuredCount, 'more run is', 'more runs are')} being read.`}
    </p>
  );
}

const COLUMNS: readonly Column[] = [
  'Node',
  'Last',
  'Runs',
  { number: 'Failed in a row' },
  { number: 'Usual share of the run' },
  { number: 'Grown by' },
  { number: 'Rows' },
  { number: 'Warehouse, 30 days' },
];

function NodeTable(props: {
  readonly nodes: readonly NodeHistory[];
  readonly price: Shown['price'];
  readonly isWithCost: boolean;
}) {
  const { nodes, price, isWithCost } = props;
  const isPriced = isWithCost && price !== 'off';
  return (
    <ScrollTable label="Models and tests" columns={[...COLUMNS, ...(isPriced ? [{ number: 'Cost, 30 days' }] : [])]}>
      {nodes.map((node) => (
        <tr>
          <th scope="row" class="name">
            <a href={hrefOfNode(node)} title={node.uniqueId}>
              {node.label}
            </a>
            {node.isOneOfSeveral && <span class="sub">in {node.scope}</span>}
            {node.isFlaky && <span class="sub">flaky: failed in {countText(node.failureCount, 'run')}</span>}
          </th>
          <td class="nowrap">{node.runs[0] !== undefined && <LastRun last={node.runs[0]} />}</td>
          <td>
            <Durations runs={node.runs} />
          </td>
          <td class={node.failuresInARow > 0 ? 'number bad' : 'number'}>{node.failuresInARow}</td>
          <td class="number nowrap">{msText(node.usualMs)}</td>
          <td class="number nowrap">{grownText(node)}</td>
          <td class="number">{node.rows === null ? '–' : node.rows.toLocaleString('en')}</td>
          <td class="number nowrap">{msText(node.warehouseMs)}</td>
          {isPriced && <td class="number nowrap">{costText(node.warehouseMs, price)}</td>}
        </tr>
      ))}
    </ScrollTable>
  );
}

function LastRun({ last }: { readonly last: NodeRun }) {
  return (
    <>
      <VerdictMark verdict={last.verdict} />
      <span class="sub">
        <a href={`/runs/${last.run.id}`}>#{last.run.id}</a> <Moment unixMs={last.startedUnixMs} isRelative />
      </span>
    </>
  );
}

const MOODS: Readonly<Record<string, Mood>> = {
  success: 'good',
  warned: 'busy',
  failed: 'bad',
  error: 'bad',
};

function VerdictMark({ verdict }: Pick<NodeRun, 'verdict'>) {
  return <Mark word={nodeWord(verdict)} mood={MOODS[verdict] ?? 'neutral'} />;
}

/** The most bars of a chart, and their sizes in pixels. */
const MAX_BARS = 20;
const BAR = { step: 5, width: 4, height: 20 } as const;

/** Shows the latest runs of a node as bars, oldest first: their height is the duration, their colour the outcome. */
function Durations({ runs }: { readonly runs: readonly NodeRun[] }) {
  const bars = runs.slice(0, MAX_BARS).reverse();
  const longestMs = Math.max(1, ...bars.map(({ shareMs }) => shareMs));
  const failed = bars.filter(({ verdict }) => isBad(verdict)).length;
  const label = `${countText(bars.length, 'run')}, oldest first, up to ${lengthText(longestMs)}, ${failed} failed`;
  return (
    <svg class="history" width={bars.length * BAR.step} height={BAR.height} role="img" aria-label={label}>
      {bars.map(({ verdict, shareMs }, at) => {
        const high = Math.max(2, (shareMs / longestMs) * BAR.height);
        const mood = MOODS[verdict] ?? 'neutral';
        return <rect class={mood} x={at * BAR.step} y={BAR.height - high} width={BAR.width} height={high} />;
      })}
    </svg>
  );
}

function JobCosts({ histories, price }: Pick<Shown, 'histories' | 'price'>) {
  const isPriced = price !== 'off';
  return (
    <section aria-labelledby="jobs">
      <h2 id="jobs">By job, last 30 days</h2>
      <ScrollTable
        label="Jobs, the dearest first"
        columns={['Job', { number: 'Runs' }, { number: 'Warehouse' }, ...(isPriced ? [{ number: 'Cost' }] : [])]}
      >
        {histories.jobs.map(({ job, runCount, warehouseMs }) => (
          <tr>
            <th scope="row" class="name">
              <a href={`/jobs/${job.id}`}>{job.name}</a>
            </th>
            <td class="number">{runCount.toLocaleString('en')}</td>
            <td class="number nowrap">{msText(warehouseMs)}</td>
            {isPriced && <td class="number nowrap">{costText(warehouseMs, price)}</td>}
          </tr>
        ))}
      </ScrollTable>
      {!isPriced && (
        <p class="hint">
          Time of queries, summed up. For what it costs, say what an hour costs:{' '}
          <code>run-bridge serve --warehouse-price "3.50 USD"</code>
        </p>
      )}
      <h2>By model and test</h2>
    </section>
  );
}

/** Shows one node. @param all its histories in all jobs, commands and targets, including this one */
function NodePage({
  node,
  all,
  ...shown
}: Shown & { readonly node: NodeHistory | undefined; readonly all: readonly NodeHistory[] }) {
  const { caller, price, version } = shown;
  if (node === undefined) {
    return (
      <Layout title="Models and tests" caller={caller} version={version}>
        <h1>No such model or test</h1>
        <p class="empty">
          None of that name was worked on in the last {countText(shown.histories.runCount, 'run')}.{' '}
          <a href="/models">Show all models and tests</a>
        </p>
      </Layout>
    );
  }
  return (
    <Layout title={node.label} caller={caller} version={version}>
      <h1 class="name">{node.label}</h1>
      <dl class="facts">
        <Fact isName name="Unique id">
          {node.uniqueId}
        </Fact>
        <Fact name="In">
          {node.scope}
          {all
            .filter((one) => one !== node)
            .map((one) => (
              <>
                {', '}
                <a href={hrefOfNode(one)}>{one.scope}</a>
              </>
            ))}
        </Fact>
        <Fact name="Failed">
          {node.failureCount} of {countText(node.runs.filter(({ isExecuted }) => isExecuted).length, 'run')}
          {node.failuresInARow > 0 && `, the last ${node.failuresInARow} in a row`}
          {node.isFlaky && ', flaky'}
        </Fact>
        <Fact name="Usual share of the run">{msText(node.usualMs)}</Fact>
        <Fact name="Grown by">{grownText(node)}</Fact>
        <Fact name="Warehouse, 30 days">
          {msText(node.warehouseMs)}
          {price !== 'off' && ` (${costText(node.warehouseMs, price)})`}
        </Fact>
      </dl>
      <ScrollTable
        label="Runs, newest first"
        columns={[
          'Run',
          'Job',
          'Started',
          'Outcome',
          { number: 'Share of the run' },
          { number: 'Warehouse' },
          { number: 'Rows' },
        ]}
      >
        {node.runs.slice(0, PAGE_SIZE).map(({ run, startedUnixMs, verdict, shareMs, warehouseMs, rows }) => (
          <tr>
            <th scope="row">
              <a href={`/runs/${run.id}/nodes?${new URLSearchParams({ node: node.uniqueId })}`}>#{run.id}</a>
            </th>
            <td class="name">{run.job.name}</td>
            <td class="nowrap">
              <Moment unixMs={startedUnixMs} isRelative />
            </td>
            <td>
              <VerdictMark verdict={verdict} />
            </td>
            <td class="number nowrap">{lengthText(shareMs)}</td>
            <td class="number nowrap">{msText(warehouseMs)}</td>
            <td class="number">{rows === null ? '–' : rows.toLocaleString('en')}</td>
          </tr>
        ))}
      </ScrollTable>
      <p>
        <a href="/models">All models and tests</a>
      </p>
    </Layout>
  );
}

function msText(ms: number | null): string {
  return ms === null ? '–' : lengthText(ms);
}

function grownText({ grownMs }: NodeHistory): string {
  return grownMs === null || grownMs <= 0 ? '–' : `+${lengthText(grownMs)}`;
}

const HOUR_MS = 3_600_000;

/** Formats the price of a duration, with two decimals, or two significant digits below a cent. */
function costText(ms: number, { perHour, currency }: Exclude<Shown['price'], 'off'>): string {
  const cost = (ms / HOUR_MS) * perHour;
  const digits =
    cost > 0 && cost < 0.01 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `${cost.toLocaleString('en', digits)} ${currency}`;
}
