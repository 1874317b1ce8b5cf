import { type Request, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { lastRunsOf } from '../../api/earlier-runs.js';
import { causeText, containing, levelFor } from '../../api/run-search.js';
import { whenAborted } from '../../core/clock.js';
import { groupBy } from '../../core/lists.js';
import { lengthText } from '../../core/text.js';
import { parseTraceId } from '../../record/telemetry-record.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import { Redactor, statusText } from '../../redaction/redactor.js';
import type { SetAsideRun } from '../../run/invocation-notes.js';
import type { CommandDigest } from '../../run/measures/command-digest.js';
import type { NodeCounts } from '../../run/verdict.js';
import { countsText } from '../../run/words.js';
import { FIRST_ACCOUNT_ID } from '../../storage/account-store.js';
import type { CatalogRun, CatalogStep, RunCatalog } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS, type RunStatus } from '../../storage/state-tables.js';
import { Layout, sendPage } from './layout.js';
import { LiveBar, LiveLine, type ShownLive, shownLive } from './live-box.js';
import type { PageDeps } from './page-deps.js';
import {
  type Column,
  countText,
  Moment,
  originText,
  Pager,
  pageNumber,
  RunHistory,
  RunMark,
  runLengthMs,
  ScrollTable,
} from './parts.js';
import { CountsBar } from './run-shell.js';

const COLUMNS: readonly Column[] = [
  'Run',
  'Status',
  'Job and cause',
  'Nodes',
  { number: 'Failed nodes' },
  'Started',
  { number: 'Duration' },
];

/** What the list of runs shows. */
export interface RunListProps {
  readonly caller: Caller;
  readonly list: {
    readonly rows: readonly RunRow[];
    /** Whether all data of the rows was read. */
    readonly isWhole: boolean;
    readonly totalCount: number;
    readonly pageSize: number;
    readonly filter: RunListFilter;
    readonly setAside: readonly SetAsideRun[];
  };
  /** How the first run is sent. */
  readonly sending: FirstRunProps;
  readonly nowUnixMs: number;
  readonly version: string;
}

/** The list of runs. */
export function RunListPage({ caller, list, sending, nowUnixMs, version }: RunListProps) {
  const { rows, isWhole, totalCount, pageSize, filter, setAside } = list;
  const isFiltered = filter.status !== null || filter.text !== '';
  return (
    <Layout title="Runs" caller={caller} version={version} isLive>
      <h1>Runs</h1>
      {(totalCount > 0 || isFiltered) && <Filter filter={filter} />}
      <section id="live" data-live="4000" {...(isWhole && { 'data-run': '' })} aria-label="List of runs">
        <SetAside runs={setAside} />
        {rows.length > 0 && <RunTable rows={rows} nowUnixMs={nowUnixMs} label="Runs, newest first" />}
        {rows.length === 0 && isFiltered && (
          <p class="empty">
            No run is like that. <a href="/">Show all runs</a>
          </p>
        )}
        {rows.length === 0 && !isFiltered && totalCount > 0 && (
          <p class="empty">
            There are not so many pages. <a href="/">Show the newest runs</a>
          </p>
        )}
        {totalCount === 0 && !isFiltered && <FirstRun {...sending} />}
        {totalCount > 0 && (
          <Pager
            {...{ page: filter.page, pageSize, totalCount, noun: 'run' }}
            href={(page) => runListHref({ ...filter, page })}
          />
        )}
      </section>
    </Layout>
  );
}

/** Names runs that could not be stored and their folders; shows nothing if there are none. */
function SetAside({ runs }: { readonly runs: readonly SetAsideRun[] }) {
  if (runs.length === 0) return null;
  return (
    <div class="notice bad" role="alert">
      <p class="strong">{countText(runs.length, 'run')} set aside: only their record logs tell of them.</p>
      <ul>
        {runs.map(({ traceId, lastSeenUnixMs, reason }) => (
          <li>
            <span class="name">trace {traceId}</span>, <Moment unixMs={lastSeenUnixMs} />
            <span class="sub">{reason}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Filter({ filter }: { readonly filter: RunListFilter }) {
  return (
    <form method="get" action="/" class="filter" aria-label="Which runs">
      <label>
        Status{' '}
        <select name="status">
          <option value="">all</option>
          {Object.keys(STATUS_CHOICES).map((word) => (
            <option value={word} selected={word === filter.status}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label class="wide">
        Job, environment, project, name, branch or error{' '}
        <input type="search" name="text" value={filter.text} maxlength={200} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function RunTable(props: { readonly rows: readonly RunRow[]; readonly nowUnixMs: number; readonly label: string }) {
  const { rows, nowUnixMs, label } = props;
  // A column with the same value everywhere distinguishes nothing.
  const hasEnvironments = new Set(rows.map(({ run }) => run.environment.id)).size > 1;
  const hasProjects = new Set(rows.map(({ run }) => run.project.id)).size > 1;
  const columns = [...COLUMNS, ...(hasEnvironments ? ['Environment'] : []), ...(hasProjects ? ['Project'] : [])];
  return (
    <ScrollTable label={label} columns={columns} isCards>
      {rows.map((row) => (
        <Row {...{ row, nowUnixMs, hasEnvironments, hasProjects }} />
      ))}
    </ScrollTable>
  );
}

function Row(props: {
  readonly row: RunRow;
  readonly nowUnixMs: number;
  readonly hasEnvironments: boolean;
  readonly hasProjects: boolean;
}) {
  const { row, nowUnixMs, hasEnvironments, hasProjects } = props;
  const { run, failedCount, cause, counts, lastRuns, live } = row;
  const lengthMs = runLengthMs(run, nowUnixMs);
  const hasRunNothing =
    run.status === RUN_STATUS.error && counts !== null && Object.values(counts).every((count) => count === 0);
  return (
    <tr id={`run-${run.id}`}>
      <th scope="row">
        <a href={`/runs/${run.id}`}>#{run.id}</a>
        {run.runKey !== null && <span class="sub name">{run.runKey}</span>}
      </th>
      <td>
        <RunMark status={run.status} />
      </td>
      <td class="name wide">
        {run.job.name}
        <Origin run={run} />
        {cause !== null && (
          <span class="sub name cause" title={cause}>
            {cause}
          </span>
        )}
        {live !== null && <LiveLine run={run} shown={live} />}
      </td>
      <td>
        {hasRunNothing && <span class="soft">nothing ran</span>}
        {counts !== null && <CountsBar counts={counts} label={wordsOf(counts)} />}
        {live !== null && <LiveBar live={live.live} />}
      </td>
      <td class={failedCount ? 'number bad minor' : 'number minor'}>{hasRunNothing ? '–' : (failedCount ?? '–')}</td>
      <td class="nowrap">
        <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} isRelative />
      </td>
      <td class="number nowrap">
        {lengthMs === null ? '–' : lengthText(lengthMs)}
        {lengthMs !== null && run.finishedUnixMs === null && <span class="sub">so far</span>}
        {lastRuns.length >= MIN_HISTORY && <RunHistory runs={lastRuns} nowUnixMs={nowUnixMs} size="tiny" />}
      </td>
      {hasEnvironments && <td class="name soft-on-card">{run.environment.name}</td>}
      {hasProjects && <td class="name soft-on-card">{run.project.name}</td>}
    </tr>
  );
}

function Origin({ run }: { readonly run: CatalogRun }) {
  const text = originText(run);
  return text === '' ? null : <span class="soft origin">{text}</span>;
}

function wordsOf(counts: NodeCounts): string {
  return countsText(counts);
}

/** The number of runs on a page. */
const PAGE_SIZE = 25;
/** The fewest of a job's runs that are shown beside a run's duration; fewer have little meaning. */
const MIN_HISTORY = 3;

/** The most runs of a trace that are shown, the earliest first. */
const MAX_OF_TRACE = 100;

/**
 * Serves `/`, the runs of an account, the last started first; and `/runs/by-trace/{trace id}`, the run with telemetry in this trace, for links that know only the trace (a comment in a query, another
 * program's trace view). If several runs share the trace, it lists them.
 */
export function runListRouter(deps: PageDeps): Router {
  const { catalog, notes, clock, otlpUrl, isTokenNeeded, version } = deps;
  const router = Router();
  router.get('/', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const filter = runListFilter(request);
    const { items, totalCount } = await catalog.listRuns(caller.accountId, {
      ...(filter.status !== null && { statuses: STATUS_CHOICES[filter.status] }),
      ...(filter.text !== '' && containing(filter.text, levelFor(caller, deps.redaction))),
      ...{ orderBy: 'created', isDescending: true, limit: PAGE_SIZE, offset: (filter.page - 1) * PAGE_SIZE },
    });
    const shown = await runRows(items, caller, deps);
    const setAside = await notes.listSetAside(caller.accountId);
    const list = { ...shown, totalCount, pageSize: PAGE_SIZE, filter, setAside };
    const sending = sendingOf(request, caller);
    const now = { nowUnixMs: clock.nowUnixMs(), version };
    await sendPage(response, <RunListPage caller={caller} list={list} sending={sending} {...now} />);
  });
  router.get('/runs/by-trace/:traceId', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const traceId = parseTraceId(String(request.params.traceId).trim());
    if (traceId === undefined) {
      throw new ApiError(404, 'That is no trace id: it has 32 hexadecimal digits, or the form of an invocation id.');
    }
    const ids = await deps.traces.runsOf(caller.accountId, traceId);
    const [only, ...others] = ids;
    if (only === undefined) {
      throw new ApiError(
        404,
        `There is no run with the trace ${traceId} (any more). One that is under way is here once its first records have come.`,
      );
    }
    response.set('Cache-Control', 'no-store');
    if (others.length === 0) return response.redirect(303, `/runs/${only}`);
    const found = await Promise.all(ids.slice(0, MAX_OF_TRACE).map((id) => catalog.findRun(caller.accountId, id)));
    const { rows } = await runRows(
      found.filter((run) => run !== undefined),
      caller,
      deps,
    );
    await sendPage(
      response,
      <Layout title="Runs of a trace" caller={caller} version={version}>
        <h1>{countText(ids.length, 'run')} in one trace</h1>
        <p class="name">Trace {traceId}</p>
        <RunTable rows={rows} nowUnixMs={clock.nowUnixMs()} label="Runs of the trace, the earliest first" />
      </Layout>,
    );
  });
  return router;

  function sendingOf({ hostname }: Request, { accountId }: Caller): FirstRunProps {
    return {
      // A wildcard address is reached by the host name of these pages.
      otlpUrl: otlpUrl().replace(/\/\/(?:0\.0\.0\.0|\[::\]):/, `//${hostname}:`),
      isTokenNeeded: isTokenNeeded || accountId !== FIRST_ACCOUNT_ID,
    };
  }
}

/** The choices, by their word in the URL. */
export const STATUS_CHOICES = {
  failed: [RUN_STATUS.error],
  running: [RUN_STATUS.queued, RUN_STATUS.starting, RUN_STATUS.running],
  success: [RUN_STATUS.success],
  canceled: [RUN_STATUS.cancelled],
} as const satisfies Readonly<Record<string, readonly RunStatus[]>>;

/** Words of addresses that were kept before these. */
const FORMER_CHOICES: Readonly<Record<string, string>> = { succeeded: 'success', cancelled: 'canceled' };

/** The filter of a list of runs. */
export interface RunListFilter {
  /** `null` for all. */
  readonly status: keyof typeof STATUS_CHOICES | null;
  /** Empty for all. */
  readonly text: string;
  /** The page number, from 1. */
  readonly page: number;
}

/** The longest text to search for, in characters. */
const MAX_TEXT_LENGTH = 200;

/** Reads the filter from a URL; invalid parts are ignored. */
export function runListFilter(request: Pick<Request, 'query'>): RunListFilter {
  const { text } = request.query;
  const named = request.query.status;
  const status = typeof named === 'string' ? (FORMER_CHOICES[named] ?? named) : null;
  return {
    status: typeof status === 'string' && isChoice(status) ? status : null,
    text: typeof text === 'string' ? text.trim().slice(0, MAX_TEXT_LENGTH) : '',
    page: pageNumber(request),
  };
}

/** Returns the URL of a list. */
export function runListHref({ status, text, page }: RunListFilter): string {
  const parameters = new URLSearchParams({
    ...(status !== null && { status }),
    ...(text !== '' && { text }),
    ...(page > 1 && { page: String(page) }),
  });
  return parameters.size === 0 ? '/' : `/?${parameters}`;
}

function isChoice(text: string): text is keyof typeof STATUS_CHOICES {
  return Object.hasOwn(STATUS_CHOICES, text);
}

/** Where telemetry is received. */
export interface FirstRunProps {
  readonly otlpUrl: string;
  /** Whether senders need a token there, or without one their runs would belong to another account. */
  readonly isTokenNeeded: boolean;
}

/** Shown while there are no runs: how to send the first one. */
export function FirstRun({ otlpUrl, isTokenNeeded }: FirstRunProps) {
  const header = isTokenNeeded ? ' OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $TOKEN"' : '';
  // Without a token a command's run belongs to the first account, and without an address it uses the data folder.
  const exec = isTokenNeeded ? `RUN_BRIDGE_TOKEN=$TOKEN run-bridge exec --to ${otlpUrl}` : 'run-bridge exec';
  return (
    <section class="empty">
      <h2>No run has come yet</h2>
      <p>On this machine, put run-bridge before your command; the run is here a second later:</p>
      <pre class="command" tabindex={0}>
        {exec} -- dbt build
      </pre>
      <p>From anywhere else, tell the engine where to send it:</p>
      <pre class="command" tabindex={0}>
        {`OTEL_EXPORTER_OTLP_ENDPOINT=${otlpUrl}${header} dbt build --export-to-otlp`}
      </pre>
      <p>
        No project at hand? <code>run-bridge demo --to {otlpUrl}</code> sends a recorded run.
      </p>
    </section>
  );
}

/** A run in a list. */
export interface RunRow {
  readonly run: CatalogRun;
  /** The number of failed nodes and tests; `null` if its telemetry no longer exists. */
  readonly failedCount: number | null;
  /** The cause of a failure on one line; `null` if it is not known yet. */
  readonly cause: string | null;
  /** Its nodes by verdict; `null` before it was measured. */
  readonly counts: NodeCounts | null;
  /** The ended runs of the job up to this one, newest first. */
  readonly lastRuns: readonly CatalogRun[];
  /** How far it has come; `null` of a run that has ended. */
  readonly live: ShownLive | null;
}

/** How long a page waits for runs that were never measured, in milliseconds; later updates of the page show the others. */
const MAX_MEASURE_MS = 1_000;

/** Short data of runs. */
interface FoundDigests {
  readonly steps: ReadonlyMap<number, readonly CatalogStep[]>;
  /** Digests of ended runs by run id; `undefined` if they are not known yet, or no longer. */
  readonly digests: ReadonlyMap<number, readonly CommandDigest[] | undefined>;
  /** Whether all runs are measured. */
  readonly isWhole: boolean;
}

/** Reads the digests of runs. Runs that were never measured are measured in the background, in the order of the list; a page waits a moment for them. */
async function digestsOf(
  runs: readonly CatalogRun[],
  { catalog, measures }: Pick<PageDeps, 'measures'> & { readonly catalog: Pick<RunCatalog, 'stepsOf'> },
): Promise<FoundDigests> {
  const ids = runs.map(({ id }) => id);
  const [first] = runs;
  const steps = groupBy(first === undefined ? [] : await catalog.stepsOf(first.accountId, ids), ({ runId }) => runId);
  const over = runs.filter(({ status }) => isFinal(status));
  const read = (run: CatalogRun) => measures.digestsOf(steps.get(run.id) ?? []);
  const digests = new Map<number, readonly CommandDigest[] | undefined>();
  for (const run of over) digests.set(run.id, await read(run));
  const missing = over.filter(({ id }) => digests.get(id) === undefined);
  if (missing.length === 0) return { steps, digests, isWhole: true };
  const isWhole = await Promise.race([
    measures.whenMeasured(missing.flatMap(({ id }) => steps.get(id) ?? [])).then(() => true),
    whenAborted(AbortSignal.timeout(MAX_MEASURE_MS)).then(() => false),
  ]);
  for (const run of missing) digests.set(run.id, await read(run));
  return { steps, digests, isWhole };
}

/** Returns the causes of failed runs by run id, as in `RunRow`. */
export async function runCauses(
  runs: readonly CatalogRun[],
  caller: Caller,
  deps: Pick<PageDeps, 'measures' | 'redaction'> & { readonly catalog: Pick<RunCatalog, 'stepsOf'> },
): Promise<{ readonly causes: ReadonlyMap<number, string | null>; readonly isWhole: boolean }> {
  const { digests, isWhole } = await digestsOf(runs, deps);
  const level = levelFor(caller, deps.redaction);
  return { causes: new Map(runs.map((run) => [run.id, causeOf(run, digests.get(run.id) ?? [], level)])), isWhole };
}

/** Returns the cause of a failure, or else the status message of its end: a command that could not be started has no telemetry. */
function causeOf(
  { status, statusMessage }: CatalogRun,
  digests: readonly CommandDigest[],
  level: RedactionLevel,
): string | null {
  const cause = causeText(digests, level);
  if (cause !== null || statusMessage === null || !isFinal(status) || status === RUN_STATUS.success) return cause;
  return level === 'off' ? statusMessage : statusText(statusMessage, new Redactor(level));
}

/** Counts the nodes of failed runs from their summaries, and returns the causes of their failures. */
export async function runRows(
  runs: readonly CatalogRun[],
  caller: Caller,
  deps: Pick<PageDeps, 'catalog' | 'tracker' | 'measures' | 'live' | 'jobs' | 'redaction' | 'clock'>,
): Promise<Pick<RunListProps['list'], 'rows' | 'isWhole'>> {
  const lastRuns = await lastRunsOf(runs, deps);
  const { steps, digests: found, isWhole } = await digestsOf(runs, deps);
  const live = await shownLive(runs, caller, deps);
  const rows: RunRow[] = [];
  for (const run of runs) {
    const underWay = live.get(run.id) ?? null;
    const failedCount = underWay?.live.failedCount ?? (await failedCountOf(steps.get(run.id) ?? [], deps.tracker));
    const digests = found.get(run.id) ?? [];
    rows.push({
      ...{ run, failedCount },
      cause: causeOf(run, digests, levelFor(caller, deps.redaction)),
      counts: digests.length === 0 ? null : summed(digests.map(({ counts }) => counts)),
      lastRuns: lastRuns(run),
      live: underWay,
    });
  }
  return { rows, isWhole };
}

function summed(counts: readonly NodeCounts[]): NodeCounts {
  const sum: Record<string, number> = {};
  for (const one of counts) for (const [word, count] of Object.entries(one)) sum[word] = (sum[word] ?? 0) + count;
  return { ...counts[0], ...sum } as NodeCounts;
}

async function failedCountOf(steps: readonly CatalogStep[], tracker: PageDeps['tracker']): Promise<number | null> {
  const ofTrace = groupBy(
    steps.flatMap(({ invocations }) => invocations),
    ({ traceId }) => traceId,
  );
  let count: number | null = null;
  for (const [traceId, commands] of ofTrace) {
    const invocations = (await tracker.find(traceId))?.invocations;
    for (const { index } of commands) {
      const found = invocations?.find((one) => one.index === index);
      if (found !== undefined) count = (count ?? 0) + found.nodeCounts.error + found.nodeCounts.failed;
    }
  }
  return count;
}
