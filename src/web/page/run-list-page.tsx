import type { Caller } from '../../api/caller.js';
import type { SetAsideRun } from '../../run/invocation-notes.js';
import { countText } from './count-text.js';
import { FirstRun, type FirstRunProps } from './first-run.js';
import { Layout } from './layout.js';
import { lengthText } from './length-text.js';
import { Moment } from './moment.js';
import { Pager } from './pager.js';
import { runLengthMs } from './run-length.js';
import { type RunListFilter, runListHref, STATUS_CHOICES } from './run-list-filter.js';
import { RunMark } from './run-mark.js';
import type { RunRow } from './run-row.js';
import { type Column, ScrollTable } from './scroll-table.js';

const COLUMNS: readonly Column[] = [
  'Run',
  'Status',
  'Job',
  { number: 'Failed nodes' },
  'Started',
  { number: 'Took' },
  'Environment',
  'Project',
];

/** What the list of runs shows. */
export interface RunListProps {
  readonly caller: Caller;
  readonly list: {
    readonly rows: readonly RunRow[];
    readonly totalCount: number;
    readonly pageSize: number;
    readonly filter: RunListFilter;
    readonly setAside: readonly SetAsideRun[];
  };
  /** How the first one is sent. */
  readonly sending: FirstRunProps;
  readonly nowUnixMs: number;
  readonly version: string;
}

/** The list of runs. */
export function RunListPage({ caller, list, sending, nowUnixMs, version }: RunListProps) {
  const { rows, totalCount, pageSize, filter, setAside } = list;
  const isFiltered = filter.status !== null || filter.text !== '';
  return (
    <Layout title="Runs" caller={caller} version={version} isLive>
      <h1>Runs</h1>
      {(totalCount > 0 || isFiltered) && <Filter filter={filter} />}
      <section id="live" data-live="4000" aria-label="List of runs">
        <SetAside runs={setAside} />
        {rows.length > 0 && <RunTable rows={rows} nowUnixMs={nowUnixMs} />}
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

/** Says which runs are in no list, and where they are; nothing where there are none. */
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
        Job, environment, project or name <input type="search" name="text" value={filter.text} maxlength={200} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function RunTable({ rows, nowUnixMs }: { readonly rows: readonly RunRow[]; readonly nowUnixMs: number }) {
  return (
    <ScrollTable label="Runs, newest first" columns={COLUMNS}>
      {rows.map((row) => (
        <Row row={row} nowUnixMs={nowUnixMs} />
      ))}
    </ScrollTable>
  );
}

function Row({ row: { run, failedCount }, nowUnixMs }: { readonly row: RunRow; readonly nowUnixMs: number }) {
  const lengthMs = runLengthMs(run, nowUnixMs);
  return (
    <tr>
      <th scope="row">
        <a href={`/runs/${run.id}`}>#{run.id}</a>
        {run.runKey !== null && <span class="sub name">{run.runKey}</span>}
      </th>
      <td>
        <RunMark status={run.status} />
      </td>
      <td class="name">{run.job.name}</td>
      <td class={failedCount ? 'number bad' : 'number'}>{failedCount ?? '–'}</td>
      <td class="nowrap">
        <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
      </td>
      <td class="number nowrap">
        {lengthMs === null ? '–' : lengthText(lengthMs)}
        {lengthMs !== null && run.finishedUnixMs === null && <span class="sub">so far</span>}
      </td>
      <td class="name">{run.environment.name}</td>
      <td class="name">{run.project.name}</td>
    </tr>
  );
}
