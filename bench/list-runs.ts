import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/core/clock.js';
import { runListQuery } from '../src/platform/routes.js';
import { FIRST_ACCOUNT_ID } from '../src/storage/account-store.js';
import type { TraceNote } from '../src/storage/invocation-store.js';
import { openPostgresState } from '../src/storage/postgres-state.js';
import { openSqliteState } from '../src/storage/sqlite-state.js';
import { notedCommand } from './noted-command.js';
import { formatSpread, spreadOf } from './spread.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '20' },
    /** An empty database in PostgreSQL; SQLite where it is left out. */
    'database-url': { type: 'string' },
  },
});
const runCount = Number(values.runs);
const rounds = Number(values.rounds);
const JOB_COUNT = 50;
const QUERIES: readonly string[] = [
  '',
  'order_by=-id',
  'order_by=-created_at',
  'order_by=-finished_at',
  'order_by=-id&limit=100&offset=99000',
  'order_by=-finished_at&limit=100&offset=50000',
  'status=20',
  'status__in=[1, 2, 3]&order_by=-id',
  'status__in=[20, 30]&order_by=-finished_at',
  'job_definition_id=4007&order_by=-id',
  'job_definition_id=4007&status=20&order_by=-finished_at',
  'environment_id=3002&order_by=-id',
  'project_id__in=[2001, 2002]&order_by=-created_at',
  'id__gt=99000',
  'created_at__range=["2026-03-01","2026-03-02"]&order_by=-id',
  'finished_at__range=["2026-03-01","2026-06-01"]&status=10&order_by=-id',
  'dbt_version=2.0.0&order_by=-id',
  'dbt_version=1.9.0&order_by=-id',
  'dbt_version__in=["2.0.0","2.0.1"]&status=20&order_by=-finished_at',
];

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-list-'));
const url = values['database-url'];
const state =
  url === undefined ? await openSqliteState(join(folder, 'state.db')) : await openPostgresState(url, systemClock);
console.log(url === undefined ? 'SQLite' : 'PostgreSQL');
try {
  const startedMs = performance.now();
  for (let from = 0; from < runCount; from += 500) {
    const count = Math.min(500, runCount - from);
    await state.invocations.note(
      Array.from({ length: count }, (_, index) => note(from + index)),
      0,
    );
  }
  const perRunMs = (performance.now() - startedMs) / runCount;
  console.log(`${runCount} runs noted, 500 at a time: ${perRunMs.toFixed(3)} ms a run`);
  for (const query of QUERIES) await measureList(query);
  await measure('a page of 100 runs with their steps and jobs', async () => {
    const { query } = runListQuery(FIRST_ACCOUNT_ID, { order_by: '-id' }, 'off');
    const { items } = await state.catalog.listRuns(FIRST_ACCOUNT_ID, query);
    const jobIds = [...new Set(items.map(({ job }) => job.id))];
    await state.catalog.findJobs(FIRST_ACCOUNT_ID, jobIds);
    const runIds = items.map(({ id }) => id);
    return (await state.catalog.stepsOf(FIRST_ACCOUNT_ID, runIds)).length;
  });
  await measure('a list of jobs', async () => {
    const query = { orderBy: 'id', isDescending: false, limit: 100, offset: 0 } as const;
    return (await state.catalog.listJobs(FIRST_ACCOUNT_ID, query)).totalCount;
  });
  await measure('one run and its steps', async () => {
    const run = await state.catalog.findRun(FIRST_ACCOUNT_ID, 1000 + Math.ceil(runCount / 2));
    return (await state.catalog.stepsOf(FIRST_ACCOUNT_ID, run === undefined ? [] : [run.id])).length;
  });
  await measure('one run noted by itself', async (round) => {
    await state.invocations.note([note(runCount + round)], 0);
    return 1;
  });
} finally {
  await state.close();
  rmSync(folder, { recursive: true, force: true });
}

async function measureList(text: string): Promise<void> {
  const { query } = runListQuery(FIRST_ACCOUNT_ID, Object.fromEntries(new URLSearchParams(text)), 'off');
  await measure(`?${text}`, async () => (await state.catalog.listRuns(FIRST_ACCOUNT_ID, query)).totalCount);
}

async function measure(name: string, action: (round: number) => Promise<number>): Promise<void> {
  const tookMs: number[] = [];
  let result = 0;
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now();
    result = await action(round);
    tookMs.push(performance.now() - startedMs);
  }
  console.log(`${name}: ${formatSpread(spreadOf(tookMs), 1)} ms (${result})`);
}

/** A run every five minutes, of fifty jobs in three environments; one in ten fails, the last few are at work. */
function note(index: number): TraceNote {
  const startedUnixMs = Date.UTC(2026, 0, 1) + index * 300_000;
  const isOver = index < runCount - 5;
  return notedCommand((index + 1).toString(16).padStart(32, '0'), {
    verdict: !isOver ? null : index % 10 === 3 ? 'error' : index % 50 === 7 ? 'canceled' : 'success',
    ...{ startedUnixMs, endedUnixMs: startedUnixMs + 60_000 + ((index * 7_919) % 600_000), isSaved: isOver },
    scope: {
      job: `job ${index % JOB_COUNT}`,
      environment: `environment ${index % 3}`,
      project: `project ${index % 7}`,
    },
  });
}
