import { type Response, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import type { LiveRuns } from '../api/live-runs.js';
import { may } from '../api/permissions.js';
import type { RunMeasures } from '../api/run-measures.js';
import type { Clock } from '../core/clock.js';
import { quantile } from '../core/lists.js';
import { lengthText } from '../core/text.js';
import type { FactsOf } from '../platform/feature.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import type { CatalogRun, RunCatalog } from '../storage/run-catalog.js';
import type { CatalogJob } from '../storage/scope-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { LiveBar, LiveLine, type ShownLive, shownLive } from '../web/page/live-box.js';
import type { PageJobs } from '../web/page/page-deps.js';
import {
  type Column,
  countText,
  Fact,
  Moment,
  originText,
  Pager,
  PostButton,
  pageNumber,
  RunHistory,
  RunMark,
  runLengthMs,
  ScrollTable,
} from '../web/page/parts.js';
import { runCauses } from '../web/page/run-list-page.js';
import { changeOf, foundJob, foundRun, OUT_OF_REACH, runIdOf } from './routes.js';
import type { JobService } from './service.js';

/** Dependencies of the pages. */
export interface JobPageDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'> & Pick<RunCatalog, 'findJob' | 'listJobs'>;
  readonly factsOf: FactsOf;
  readonly openService: () => Promise<JobService>;
  readonly jobs: Pick<PageJobs, 'cancelStateOf'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf' | 'whenMeasured' | 'logsOf'>;
  /** How far runs under way have come. */
  readonly live: Pick<LiveRuns, 'of'>;
  /** The redaction setting, for texts shown to visitors who may not read artifacts. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
  /** The program's version. */
  readonly version: string;
}

/** The number of jobs on a page, and of a job's runs. */
const PAGE_SIZE = 25;
/** The number of runs in a job's history. */
const HISTORY_LENGTH = 20;
/** The reason of runs that are started on the pages. */
const REASON = 'Started on the pages';

/** Serves `/jobs` and `/jobs/{id}`, which show how runs of jobs ended and how long they took, and start, retry and cancel runs. */
export function jobPages(deps: JobPageDeps): Router {
  const { catalog, factsOf, openService, clock, version } = deps;
  const router = Router();
  router.get('/jobs', authorize('jobs:read'), async (request, response) => {
    const caller = callerOf(response);
    const page = pageNumber(request);
    const query = { orderBy: 'name', isDescending: false, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE } as const;
    const { items, totalCount } = await catalog.listJobs(caller.accountId, query);
    const rows: JobRow[] = [];
    for (const job of items) rows.push({ job, runs: await latestOf(job), ...declaredOf(job) });
    const part = { page, pageSize: PAGE_SIZE, totalCount };
    await sendPage(response, <JobListPage {...{ caller, rows, version, nowUnixMs: clock.nowUnixMs() }} {...part} />);
  });
  router.get('/jobs/:jobId', authorize('jobs:read'), async (request, response) => {
    const job = await foundJob(request, response, catalog);
    const page = pageNumber(request);
    const query = runQuery(job, page, PAGE_SIZE);
    const { items, totalCount } = await catalog.listRuns(job.accountId, query);
    const history = page === 1 ? items : await latestOf(job);
    const caller = callerOf(response);
    const found = await runCauses(items, caller, deps);
    const live = await shownLive(items, caller, deps);
    const shown = { caller, job, runs: items, ...found, live, history, version, nowUnixMs: clock.nowUnixMs() };
    const part = { page, pageSize: PAGE_SIZE, totalCount };
    await sendPage(response, <JobPage {...shown} {...part} {...declaredOf(job)} />);
  });
  router.post('/jobs/:jobId/run', authorize('jobs:run'), async (request, response) => {
    const { accountId, name } = await foundJob(request, response, catalog);
    const service = await openService();
    redirectTo(response, runIdOf(await service.start(accountId, name, REASON), name), service);
  });
  router.post('/runs/:runId/retry', authorize('jobs:run'), async (request, response) => {
    const run = await foundRun(request, response, catalog);
    const service = await openService();
    redirectTo(response, runIdOf(await service.retry(changeOf(run), REASON), run.job.name), service);
  });
  router.post('/runs/:runId/cancel', authorize('runs:cancel'), async (request, response) => {
    const run = await foundRun(request, response, catalog);
    const result = await (await openService()).cancel(changeOf(run));
    if (result.kind === 'outOfReach') throw new ApiError(409, OUT_OF_REACH);
    response.redirect(303, `/runs/${run.id}`);
  });
  return router;

  function redirectTo(response: Response, runId: number, service: JobService): void {
    service.startQueued();
    response.redirect(303, `/runs/${runId}`);
  }

  function declaredOf(job: CatalogJob): Declared {
    return { commands: factsOf(job)?.commandLines ?? [] };
  }

  async function latestOf(job: CatalogJob): Promise<readonly CatalogRun[]> {
    return (await catalog.listRuns(job.accountId, runQuery(job, 1, HISTORY_LENGTH))).items;
  }
}

/** Returns the query for a page of a job's runs, newest first. */
function runQuery({ id }: CatalogJob, page: number, limit: number) {
  return { jobId: id, orderBy: 'id', isDescending: true, limit, offset: (page - 1) * limit } as const;
}

/** The configured part of a job. */
interface Declared {
  /** The command lines of the job; empty if it cannot be started from here. */
  readonly commands: readonly string[];
}

/** A job and its latest runs, newest first. */
interface JobRow extends Declared {
  readonly job: CatalogJob;
  readonly runs: readonly CatalogRun[];
}

interface Part {
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
}

interface JobListProps extends Part {
  readonly caller: Caller;
  readonly rows: readonly JobRow[];
  readonly nowUnixMs: number;
  readonly version: string;
}

const COLUMNS: readonly Column[] = [
  'Job',
  'Last run',
  `Last ${HISTORY_LENGTH} runs`,
  { number: 'Usual duration' },
  { number: 'Failed' },
];

function JobListPage({ caller, rows, nowUnixMs, version, ...part }: JobListProps) {
  const mayRun = may(caller, 'jobs:run') && rows.some(({ commands }) => commands.length > 0);
  return (
    <Layout title="Jobs" caller={caller} version={version} isLive>
      <h1>Jobs</h1>
      <div id="live" data-live="5000" data-run="">
        {rows.length === 0 ? (
          <NoJob />
        ) : (
          <ScrollTable label="Jobs by name" columns={[...COLUMNS, ...(mayRun ? ['Run'] : [])]}>
            {rows.map((row) => (
              <Row {...row} nowUnixMs={nowUnixMs} mayRun={mayRun} />
            ))}
          </ScrollTable>
        )}
        {part.totalCount > part.pageSize && (
          <Pager {...part} noun="job" href={(page) => `/jobs?page=${page}`} words={['Before', 'After']} />
        )}
      </div>
    </Layout>
  );
}

function NoJob() {
  return (
    <section class="empty">
      <p>No jobs yet. A run belongs to the job that it names, else to "adhoc":</p>
      <pre class="command" tabindex={0}>
        run-bridge exec --job nightly -- dbt build
      </pre>
    </section>
  );
}

function Row(props: JobRow & { readonly nowUnixMs: number; readonly mayRun: boolean }) {
  const { job, runs, commands, nowUnixMs, mayRun } = props;
  const [latest] = runs;
  const ended = runs.filter(isEnded);
  const failed = ended.filter(({ status }) => status === RUN_STATUS.error).length;
  return (
    <tr>
      <th scope="row" class="name">
        <a href={`/jobs/${job.id}`}>{job.name}</a>
        {latest !== undefined && (
          <span class="sub">
            {latest.environment.name}, {latest.project.name}
          </span>
        )}
      </th>
      <td>
        {latest !== undefined && (
          <>
            <RunMark status={latest.status} /> <a href={`/runs/${latest.id}`}>#{latest.id}</a>
            <span class="sub">
              <Moment unixMs={latest.startedUnixMs ?? latest.createdUnixMs} />
            </span>
          </>
        )}
      </td>
      <td>
        <RunHistory runs={runs} nowUnixMs={nowUnixMs} size="small" />
      </td>
      <td class="number">{usualText(ended)}</td>
      <td class={failed > 0 ? 'number bad' : 'number'}>
        <span class="nowrap">
          {failed} of {ended.length}
        </span>
      </td>
      {mayRun && (
        <td>{commands.length > 0 && <PostButton action={`/jobs/${job.id}/run`} text="Run" of={job.name} />}</td>
      )}
    </tr>
  );
}

interface JobPageProps extends Part, Declared {
  readonly caller: Caller;
  readonly job: CatalogJob;
  readonly runs: readonly CatalogRun[];
  /** The causes of failures by run id. */
  readonly causes: ReadonlyMap<number, string | null>;
  /** Whether all of them are measured. */
  readonly isWhole: boolean;
  /** How far runs under way have come, by run id. */
  readonly live: ReadonlyMap<number, ShownLive>;
  /** The latest runs, newest first. */
  readonly history: readonly CatalogRun[];
  readonly nowUnixMs: number;
  readonly version: string;
}

function JobPage(props: JobPageProps) {
  const { caller, job, runs, causes, isWhole, live, history, commands, nowUnixMs, version, ...part } = props;
  const ended = history.filter(isEnded);
  const isRunnable = commands.length > 0 && may(caller, 'jobs:run');
  const mayRetry = (run: CatalogRun) => isRunnable && isEnded(run) && run.status !== RUN_STATUS.success;
  const hasOrigins = runs.some((run) => originText(run) !== '');
  const hasActions = runs.some(mayRetry);
  return (
    <Layout title={job.name} caller={caller} version={version} isLive>
      <h1 class="name">{job.name}</h1>
      {isRunnable && (
        <section class="actions" aria-label="What can be done">
          <PostButton action={`/jobs/${job.id}/run`} text="Run" of={job.name} />
        </section>
      )}
      <div id="live" data-live="5000" {...(isWhole && { 'data-run': '' })}>
        <dl class="facts">
          <Fact name="Runs">{part.totalCount.toLocaleString('en')}</Fact>
          <Fact name={`Failed of the last ${ended.length}`}>
            {ended.filter(({ status }) => status === RUN_STATUS.error).length}
          </Fact>
          <Fact name="Usual duration">{usualText(ended)}</Fact>
          {may(caller, 'artifacts:read') && commands.length > 0 && (
            <Fact isName name="Commands">
              {commands.join(', ')}
            </Fact>
          )}
        </dl>
        <RunHistory runs={history} nowUnixMs={nowUnixMs} size="large" />
        <h2>{countText(part.totalCount, 'run')}</h2>
        <ScrollTable
          label="Runs, newest first"
          columns={[
            ...['Run', 'Status', 'Started', { number: 'Duration' }, 'Cause'],
            ...(hasOrigins ? ['Started by'] : []),
            ...(hasActions ? ['Actions'] : []),
          ]}
          isCards
        >
          {runs.map((run) => {
            const lengthMs = runLengthMs(run, nowUnixMs);
            const cause = causes.get(run.id) ?? null;
            const underWay = live.get(run.id);
            return (
              <tr id={`run-${run.id}`}>
                <th scope="row">
                  <a href={`/runs/${run.id}`}>#{run.id}</a>
                </th>
                <td>
                  <RunMark status={run.status} />
                </td>
                <td>
                  <Moment unixMs={run.startedUnixMs ?? run.createdUnixMs} />
                </td>
                <td class="number nowrap">{lengthMs === null ? '' : lengthText(lengthMs)}</td>
                <td class="name wide">
                  {cause !== null && (
                    <span class="cause" title={cause}>
                      {cause}
                    </span>
                  )}
                  {underWay !== undefined && (
                    <>
                      <LiveBar live={underWay.live} />
                      <LiveLine run={run} shown={underWay} />
                    </>
                  )}
                </td>
                {hasOrigins && <td class="text wide">{originText(run)}</td>}
                {hasActions && (
                  <td>
                    {mayRetry(run) && <PostButton action={`/runs/${run.id}/retry`} text="Retry" of={`run ${run.id}`} />}
                  </td>
                )}
              </tr>
            );
          })}
        </ScrollTable>
        <Pager {...part} noun="run" href={(page) => `/jobs/${job.id}?page=${page}`} />
      </div>
    </Layout>
  );
}

function isEnded({ finishedUnixMs }: CatalogRun): boolean {
  return finishedUnixMs !== null;
}

/** Returns the median duration of the successful runs; a dash if there is none. */
function usualText(runs: readonly CatalogRun[]): string {
  const succeeded = runs.filter(({ status }) => status === RUN_STATUS.success);
  const lengths = succeeded.map((run) => runLengthMs(run, 0) ?? 0);
  const median = quantile(lengths, 0.5);
  return median === undefined ? '–' : lengthText(median);
}
