import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toUnixMs, type UnixNano } from '../../../src/record/telemetry-record.js';
import type { State } from '../../../src/storage/state.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { runInProcess } from '../../fake/run-in-process.js';
import { sampleFolder, sampleRecords } from '../../fake/sample-run.js';
import { V2Server } from '../../fake/v2-server.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

// Real runs, imported once in this order: runs 1001, 1002 … of the job adhoc; then one that exec ran.
const SAMPLES = ['build-clean', 'build-mixed', 'interrupted', 'preview-120-failed'];
const NIGHTLY = {
  ...{ name: 'nightly', id: null, match: [], project: null, environment: null, commands: [['dbt', 'build']] },
  ...{
    takesOtherSteps: false,
    workingDir: '/',
    variables: {},
    targetName: 'prod',
    threads: 8,
    timeoutMs: null,
    expectMs: null,
  },
};

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-v2-'));
const clock = new FakeClock();
let state: State;
let server: V2Server;
let namedRun: number;
/** The large runs have a folder of their own: 1001 and 1002. */
const FIRST_LARGE_RUN = 1001;
let largeState: State;
let large: V2Server;
beforeAll(async () => {
  const largeFolder = join(folder, 'large');
  const largeFiles = LARGE_SAMPLES.map((sample) => join(sampleFolder(sample), 'otel.jsonl'));
  const imported = await runInProcess(['import', ...largeFiles, '--data-dir', largeFolder, '--parquet', 'off'], folder);
  expect(imported.exitCode).toBe(0);
  largeState = await openFreshState(join(largeFolder, 'state.db'));
  large = await V2Server.start(largeState, { dataFolder: largeFolder, jobs: [], clock });
});
beforeAll(async () => {
  const files = SAMPLES.map((sample) => join(import.meta.dirname, `../../fixture/samples/${sample}/otel.jsonl`));
  const { exitCode } = await runInProcess(['import', ...files, '--data-dir', folder, '--parquet', 'off'], folder);
  expect(exitCode).toBe(0);
  state = await openFreshState(join(folder, 'state.db'));
  const details = { job: 'nightly', environment: 'production', project: 'shop', startedUnixMs: clock.nowUnixMs() };
  const begun = await state.executions.register(stepStart('a', { ...details, reason: 'by hand' }), 'local');
  namedRun = begun.runId;
  clock.advance(110_000);
  server = await V2Server.start(state, { dataFolder: folder, jobs: [NIGHTLY], clock });
});
afterAll(async () => {
  await Promise.all([server.close(), large.close()]);
  await Promise.all([state.close(), largeState.close()]);
  rmSync(folder, { recursive: true, force: true });
});

describe('what clients read before anything else', () => {
  it('is a job with the flags that dbt-jobs-as-code reads no job without', async () => {
    const { body } = await server.getAt('/api/v2/accounts/10001/jobs/');
    expect(body.data.map((job: { compare_changes_flags: unknown }) => job.compare_changes_flags)).toEqual(
      body.data.map(() => '--select state:modified'),
    );
  });

  it('are no notifications, and no environment variables of a job, by their names', async () => {
    const notifications = await server.getAt('/api/v2/accounts/10001/notifications/');
    expect(notifications).toMatchObject({ status: 200, body: { data: [], extra: { pagination: { total_count: 0 } } } });
    const path = '/api/v3/accounts/10001/projects/2002/environment-variables/job/?job_definition_id=4002';
    expect(await server.getAt(path)).toMatchObject({ status: 200, body: { status: { code: 200 }, data: {} } });
    const ofNothing = await server.getAt(path.replace('2002', '2999'));
    expect(ofNothing).toMatchObject({ status: 404, body: { status: { code: 404 }, data: null } });
  });
});

describe('the accounts of the platform API', () => {
  it('are the caller’s own', async () => {
    const account = { id: 10_001, name: 'run-bridge', identifier: '10001', state: 1, locked: false, plan: null };
    expect((await server.getAt('/api/v2/accounts/')).body).toMatchObject({ status: { code: 200 }, data: [account] });
    expect((await server.getAt('/api/v2/accounts/10001')).body.data).toMatchObject(account);
  });

  it.each(['/api/v2/accounts/1', '/api/v2/accounts/1/runs/', '/api/v2/accounts/1/jobs'])(
    'are nothing at all where they are another’s: %s',
    async (path) => {
      expect(await server.getAt(path)).toMatchObject({
        status: 404,
        body: { status: { code: 404, is_success: false }, data: null },
      });
    },
  );
});

describe('a run of the platform API', () => {
  it('has every field that clients read', async () => {
    const { body } = await server.get('/runs/1002/');
    expect(body.status).toEqual({
      code: 200,
      is_success: true,
      user_message: 'Success!',
      developer_message: '',
    });
    expect(body.data).toEqual({
      ...{ id: 1002, trigger_id: 1002, account_id: 10_001, environment_id: 3001, project_id: 2001 },
      ...{ job_definition_id: 4001, job_id: 4001, status: 20, status_humanized: 'Error' },
      ...{ dbt_version: '', git_branch: null, git_sha: null, status_message: 'Executed with errors' },
      href: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/deploy\/10001\/projects\/2001\/runs\/1002$/),
      created_at: '2026-11-21 00:43:12.681000+00:00',
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00:00$/),
      dequeued_at: '2026-11-21 00:43:12.681000+00:00',
      started_at: '2026-11-21 00:43:12.681000+00:00',
      finished_at: '2026-11-21 00:43:14.712000+00:00',
      created_at_humanized: expect.stringMatching(/ ago$/),
      finished_at_humanized: expect.stringMatching(/ ago$/),
      ...{ duration: '00:00:02', queued_duration: '00:00:00', run_duration: '00:00:02' },
      ...{ duration_humanized: '2 seconds', queued_duration_humanized: '0 seconds' },
      ...{ run_duration_humanized: '2 seconds', artifacts_saved: true },
      ...{ has_docs_generated: false, has_sources_generated: false, notifications_sent: false },
      ...{ in_progress: false, is_complete: true, is_success: false, is_error: true, is_cancelled: false },
      ...{ is_running: false, can_retry: false },
      ...{ trigger: null, job: null, environment: null, run_steps: [] },
      ...{ retry_not_supported_reason: 'RETRY_UNSUPPORTED_CMD', used_repo_cache: false, blocked_by: [] },
      ...{ owner_thread_id: null, executed_by_thread_id: null, deferring_run_id: null, artifact_s3_path: null },
      ...{ last_checked_at: null, last_heartbeat_at: null, should_start_at: null, deprecation: null },
      ...{ retrying_run_id: null, audit: null },
    });
  });

  it('is linked to where browsers find its page: by https if a proxy says so, under the public URL if there is one', async () => {
    const hrefOf = async (headers: Record<string, string>, from = server) =>
      (await from.get('/runs/1001/', headers)).body.data.href;
    const page = '/deploy/10001/projects/2001/runs/1001';
    const host = { Host: 'runs.example.com' };
    expect(await hrefOf(host)).toBe(`http://runs.example.com${page}`);
    expect(await hrefOf({ ...host, 'X-Forwarded-Proto': 'https' })).toBe(`https://runs.example.com${page}`);
    expect(await hrefOf({ ...host, 'X-Forwarded-Proto': 'HTTPS, http' })).toBe(`https://runs.example.com${page}`);
    const publicUrl = 'https://runs.example.com/bridge';
    const behind = await V2Server.start(state, { dataFolder: folder, jobs: [], clock, publicUrl });
    expect(await hrefOf({}, behind)).toBe(`${publicUrl}${page}`);
    await behind.close();
  });

  it('goes on until its end, in words too', async () => {
    const { body } = await server.get(`/runs/${namedRun}`);
    expect(body.data).toMatchObject({
      ...{ status: 2, status_humanized: 'Starting', in_progress: true, is_complete: false, finished_at: null },
      ...{ duration: '00:01:50', duration_humanized: '1 minute, 50 seconds', finished_at_humanized: '' },
      ...{ queued_duration: '00:01:50', run_duration: '00:00:00', can_retry: false, started_at: null },
    });
  });

  it('says what it is: interrupted is cancelled', async () => {
    const { body } = await server.get('/runs/1003/');
    expect(body.data).toMatchObject({ status: 30, status_humanized: 'Cancelled', is_cancelled: true, is_error: false });
  });

  it.each([
    ['a,b', 'include_related=run_steps,trigger'],
    ['repeated', 'include_related=run_steps&include_related=trigger'],
    ['a list', 'include_related=["run_steps","trigger"]'],
    ['a list in single quotes', "include_related=['run_steps', 'trigger']"],
    ['encoded', `include_related=${encodeURIComponent('["run_steps","trigger"]')}`],
    ['with what there is not', 'include_related=run_steps,trigger,repository'],
  ])('has what is related to it: %s', async (_kind, query) => {
    const { body } = await server.get(`/runs/1001/?${encodeURI(decodeURIComponent(query))}`);
    expect(body.data.trigger).toMatchObject({ id: 1001 });
    expect(body.data.run_steps).toHaveLength(1);
    expect(body.data.job).toBeNull();
  });

  it.each(['include_related=', 'include_related=[]', 'include_related=[""]', ''])(
    'has nothing beside it where nothing is asked for: %s',
    async (query) => {
      const { body } = await server.get(`/runs/1001/?${query}`);
      expect(body.data).toMatchObject({ run_steps: [], trigger: null, job: null, environment: null });
    },
  );

  it('has its job, its trigger and its environment', async () => {
    const { body } = await server.get(`/runs/${namedRun}/?include_related=job,trigger,environment`);
    expect(body.data).toMatchObject({
      job: { name: 'nightly', id: body.data.job_id, settings: { threads: 8, target_name: 'prod' } },
      trigger: { cause: 'by hand', cause_category: null },
    });
    const { environment, environment_id: id } = body.data;
    expect(environment).toMatchObject({ name: 'production', deployment_type: 'production', dbt_version: 'latest' });
    const itself = (await server.get(`/environments/${id}/`)).body.data;
    // Terraform's provider reads no lists of an environment within something else.
    expect(environment).toEqual({ ...itself, jobs: null, custom_environment_variables: null });
  });

  it.each(['/runs/404/', '/runs/abc', '/runs/1e3', '/steps/1', '/jobs/1/'])(
    'that is not there is a 404 in the envelope: %s',
    async (path) => {
      const { status, body } = await server.get(path);
      expect(status).toBe(404);
      expect(body).toEqual({
        status: {
          code: 404,
          is_success: false,
          user_message: 'The requested resource was not found.',
          developer_message: null,
        },
        data: null,
      });
    },
  );
});

describe('a step of the platform API', () => {
  it('has its command between backticks, its logs as text, and is there by its own number', async () => {
    const { body } = await server.get('/runs/1002/?include_related=["run_steps","debug_logs"]');
    const [step] = body.data.run_steps;
    expect(step).toMatchObject({
      ...{ run_id: 1002, account_id: 10_001, index: 1, status: 20, status_humanized: 'Error' },
      name: expect.stringMatching(/^Invoke dbt with `dbt build --exclude tag:slow .*`$/),
      status_color: expect.stringMatching(/^#[0-9a-f]{6}$/),
      ...{ duration: '00:00:02', duration_humanized: '2 seconds' },
      run_step_command: { run_step_id: step.id, dbt_command: expect.stringMatching(/^dbt build /) },
      run_step_invocation: { run_step_id: step.id, run_id: 1002 },
    });
    expect(step.truncated_debug_logs).toBe(step.debug_logs);
    expect(step.logs).toMatch(/00:43:13 {2}a log message from orders_inc\n/);
    expect(step.logs).not.toMatch(/Writing runtime/);
    expect(step.debug_logs).toMatch(/DEBUG {2}Writing runtime/);
    expect((await server.get(`/steps/${step.id}/`)).body.data).toEqual(step);
    const without = await server.get('/runs/1002/?include_related=run_steps');
    expect(without.body.data.run_steps).toEqual([{ ...step, debug_logs: '' }]);
  });
});

describe('the list of runs of the platform API', () => {
  const ids = async (query: string) => {
    const { body } = await server.get(`/runs/?${encodeURI(query)}`);
    return { ids: body.data.map(({ id }: { id: number }) => id), ...body.extra };
  };

  it.each([
    ['', [1001, 1002, 1003, 1004, 1005]],
    ['order_by=-id', [1005, 1004, 1003, 1002, 1001]],
    ['order_by=-id&limit=2&offset=1', [1004, 1003]],
    ['order_by=finished_at&limit=2', [1004, 1002]],
    ['order_by=-finished_at&limit=2', [1005, 1003]],
    ['order_by=created_at&limit=2', [1005, 1004]],
    ['status=20', [1002, 1004]],
    ['status=success', [1001]],
    ['status__in=[10, 30]', [1001, 1003]],
    ['status__in=10&status__in=30', [1001, 1003]],
    ['status__in=[1, 2, 3]', [1005]],
    ['status=20&status__in=[10]', []],
    ['status__in=[]', [1001, 1002, 1003, 1004, 1005]],
    ['job_definition_id=4002', [1005]],
    ['environment_id=3002', [1005]],
    ['project_id=2001', [1001, 1002, 1003, 1004]],
    ['project_id__in=[2002, 7]', [1005]],
    ['id__gt=1003', [1004, 1005]],
    ['created_at__range=["2026-11-21T00:43:00Z","2026-11-21T00:43:30Z"]', [1001, 1002]],
    ['created_at__range=["2026-02-01","2026-03-01"]', [1004]],
    ['finished_at__range=["2026-11-21 00:43:35.000000 00:00","2026-11-21T01:43:39+01:00"]', [1003]],
    ['whatever=7&state=all', [1001, 1002, 1003, 1004, 1005]],
    ['status_in=[10, 30]', [1001, 1003]],
    ['status_in=[10, 30]&status__in=[30]', [1003]],
    ['pk=1002', [1002]],
    ['pk__in=[1004, 1002, 9]', [1002, 1004]],
    ['pk=1002&pk__in=[1004]', []],
    ['trigger_id=1003', [1003]],
    ['trigger_id=1003&pk=1002', []],
    ['dbt_version__in=["9", "8"]', []],
    ['dbt_version=9', []],
    ['has_docs_generated=true', []],
    ['has_docs_generated=False&has_sources_generated=false', [1001, 1002, 1003, 1004, 1005]],
    ['has_sources_generated=1', []],
    ['deferring_run_id=1001', []],
    ['state=active', [1001, 1002, 1003, 1004, 1005]],
    ['state=deleted', []],
    ['state=2', []],
  ])('answers ?%s', async (query, expected) => {
    expect((await ids(query)).ids).toEqual(expected);
  });

  it('says what it was filtered by, and how much there is', async () => {
    const extra = { filters: { limit: 1, offset: 0 }, pagination: { count: 1, total_count: 2 } };
    const answer = await ids('status__in=["10", 30]&limit=1&order_by=-id&job_definition_id=4001');
    expect(answer).toMatchObject({
      ...extra,
      order_by: '-id',
      filters: { ...extra.filters, status__in: [10, 30], job_definition_id: 4001 },
    });
    expect((await ids('limit=1000')).filters).toMatchObject({ limit: 100, offset: 0 });
    const given = 'pk=7&pk__in=7,8&trigger_id=7&dbt_version=2.0.0&has_docs_generated=False&state=1&unknown=7';
    expect((await ids(given)).filters).toEqual({
      ...{ limit: 100, offset: 0, account_id: 10_001, pk: 7, pk__in: [7, 8], trigger_id: 7, dbt_version: '2.0.0' },
      ...{ has_docs_generated: false, state: 1 },
    });
    expect((await ids('')).order_by).toBe('id');
  });

  it('is paged by adding the limit to the offset until everything was counted', async () => {
    const found: number[] = [];
    for (let offset = 0, total = 1; found.length < total; ) {
      const page = await ids(`limit=2&offset=${offset}&order_by=-id`);
      found.push(...page.ids);
      total = page.pagination.total_count;
      offset += page.filters.limit;
    }
    expect(found).toEqual([1005, 1004, 1003, 1002, 1001]);
  });

  it('has related things in each run, and no logs', async () => {
    const { body } = await server.get('/runs?include_related=run_steps,job');
    for (const run of body.data) {
      expect(run.job.id).toBe(run.job_id);
      expect(run.run_steps).toMatchObject([{ run_id: run.id, logs: '' }]);
    }
  });

  it.each([
    ['limit=abc', /limit is not a whole number: "abc"/],
    ['limit=0', /limit is less than 1/],
    ['offset=-1', /offset is less than 0/],
    ['order_by=name', /order_by is not one of id, created_at, finished_at/],
    ['pk=x', /pk is not a whole number: "x"/],
    ['has_docs_generated=maybe', /has_docs_generated is neither true nor false/],
    ['state=gone', /state is not active \(1\), deleted \(2\) or all/],
    ['status=7', /status is not of 1, 2, 3, 10, 20, 30/],
    ['created_at__range=["yesterday","2026-01-01"]', /created_at__range is not two times/],
    ['created_at__range=["2026-01-01"]', /created_at__range is not two times/],
  ])('refuses ?%s, and names the parameter', async (query, message) => {
    const { status, body } = await server.get(`/runs/?${encodeURI(query)}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ status: { code: 400, user_message: expect.stringMatching(message) }, data: null });
  });
});

describe('the jobs of the platform API', () => {
  it.each([
    ['', ['adhoc', 'nightly']],
    ['order_by=-name', ['nightly', 'adhoc']],
    ['name__icontains=NIGHT', ['nightly']],
    ['project_id=2002', ['nightly']],
    ['project_id__in=[2001]', ['adhoc']],
    ['environment_id=3001', ['adhoc']],
    ['state=1', ['adhoc', 'nightly']],
    ['state=2', []],
    ['state=all', ['adhoc', 'nightly']],
    ['state=deleted', []],
    ['limit=1&offset=1', ['nightly']],
    ['pk=4002', ['nightly']],
    ['pk=4002&project_id=2001', []],
    ['triggers_schedule=true', []],
    ['triggers_schedule=false&is_system=false', ['adhoc', 'nightly']],
    ['is_system=true', []],
    ['is_fusion_ready=true', []],
    ['is_fusion_ready=false', ['adhoc', 'nightly']],
  ])('answers ?%s', async (query, expected) => {
    const { body } = await server.get(`/jobs?${encodeURI(query)}`);
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(expected);
    expect(body.extra.pagination.count).toBe(expected.length);
  });

  it('have what the configuration says of them', async () => {
    expect((await server.get('/jobs/4002/')).body.data).toMatchObject({
      ...{ id: 4002, account_id: 10_001, project_id: 2002, environment_id: 3002, name: 'nightly', state: 1 },
      ...{ execute_steps: ['dbt build'], settings: { threads: 8, target_name: 'prod' } },
      ...{ schedule: expect.any(Object), triggers: expect.any(Object) },
    });
    expect((await server.get('/jobs/4001')).body.data).toMatchObject({ name: 'adhoc', execute_steps: [] });
  });

  it('have the timeout of the configuration, and the schedule that the hosted platform shows of a job without one', async () => {
    const schedule = { cron: '0 * * * *', date: { type: 'every_day' }, time: { type: 'every_hour', interval: 1 } };
    const timed = { ...NIGHTLY, timeoutMs: 90_500 };
    const other = await V2Server.start(state, { dataFolder: folder, jobs: [timed], clock });
    expect((await other.get('/jobs/4002/')).body.data).toMatchObject({ schedule, execution: { timeout_seconds: 91 } });
    await other.close();
    expect((await server.get('/jobs/4001')).body.data).toMatchObject({ schedule, execution: { timeout_seconds: 0 } });
  });

  it('have their environment and their latest runs where that is asked for', async () => {
    const related = 'include_related=["environment","most_recent_run","most_recent_completed_run"]';
    const [adhoc, nightly] = (await server.get(`/jobs/?${related}`)).body.data;
    expect(adhoc).toMatchObject({
      environment: { id: 3001, name: 'default', deployment_type: null },
      most_recent_run: { id: 1004, is_complete: true, job_definition_id: 4001 },
      most_recent_completed_run: { id: 1004 },
    });
    expect(nightly).toMatchObject({
      environment: { id: 3002, name: 'production', deployment_type: 'production' },
      most_recent_run: { id: namedRun, is_complete: false },
      most_recent_completed_run: null,
    });
    const [run] = (await server.get(`/runs/?pk=1004`)).body.data;
    expect(adhoc.most_recent_run).toEqual(run);
    expect((await server.get('/jobs/4001/?include_related=most_recent_run')).body.data).toMatchObject({
      ...{ environment: null, most_recent_run: { id: 1004 }, most_recent_completed_run: null },
    });
    const none = { environment: null, most_recent_run: null, most_recent_completed_run: null };
    expect((await server.get('/jobs/4001')).body.data).toMatchObject(none);
  });

  it.each([
    ['POST', '/jobs/'],
    ['POST', '/jobs/4002/'],
    ['DELETE', '/jobs/4002'],
  ])('are declared in the configuration alone: %s %s is refused', async (method, path) => {
    await expectRefused(method, `/api/v2/accounts/10001${path}`);
  });
});

async function expectRefused(method: string, path: string) {
  const { status, headers, body } = await server.ask(method, path);
  expect([status, headers.allow]).toEqual([405, 'GET']);
  expect(body).toMatchObject({
    status: { code: 405, is_success: false, user_message: expect.stringMatching(/declared in run-bridge\.yaml/) },
    data: null,
  });
}

describe.each(['v2', 'v3'])('projects and environments of the platform API, version %s', (version) => {
  const ask = (path: string) => server.getAt(encodeURI(`/api/${version}/accounts/10001${path}`));
  const names = async (path: string) => {
    const { body } = await ask(path);
    expect(body.extra.pagination.count).toBe(body.data.length);
    return body.data.map(({ name }: { name: string }) => name);
  };

  it.each([
    ['POST', '/projects/'],
    ['POST', '/projects/2001'],
    ['DELETE', '/projects/2001/'],
    ['POST', '/projects/2001/environments/'],
    ['POST', '/projects/2001/environments/3001'],
    ['DELETE', '/projects/2001/environments/3001/'],
    ['POST', '/environments'],
    ['POST', '/environments/3001/'],
    ['DELETE', '/environments/3001'],
  ])('are declared in the configuration alone: %s %s is refused', async (method, path) => {
    await expectRefused(method, `/api/${version}/accounts/10001${path}`);
  });

  it.each([
    ['/projects/', ['default', 'shop']],
    ['/projects?order_by=-name&limit=1', ['shop']],
    ['/projects/?name__icontains=SHO', ['shop']],
    ['/projects/?pk=2001', ['default']],
    ['/projects/?pk__in=[2001,2002]&pk__gt=2001', ['shop']],
    ['/projects/?state=2', []],
    ['/projects/?state=all&nobody=knows', ['default', 'shop']],
    ['/environments/', ['default', 'production']],
    ['/environments?project_id=2002', ['production']],
    ['/environments/?project_id__in=2001,2002&id__gt=3001', ['production']],
    ['/environments/?name=default', ['default']],
    ['/environments/?limit=1&offset=1', ['production']],
    ['/environments/?state=deleted', []],
    ['/environments/?dbt_version=0.1', []],
    ['/projects/2002/environments/', ['production']],
    ['/projects/2001/environments?project_id=2002', []],
  ])('answers %s', async (path, expected) => {
    expect(await names(path)).toEqual(expected);
  });

  it('say what they were filtered by, and how much there is', async () => {
    const { body } = await ask('/projects/2002/environments/?limit=1&name__icontains=o');
    expect(body).toMatchObject({
      status: { code: 200 },
      extra: {
        filters: { limit: 1, offset: 0, account_id: 10_001, project_id: 2002, name__icontains: 'o' },
        pagination: { count: 1, total_count: 1 },
      },
    });
  });

  it('are there by their numbers, with what clients read', async () => {
    const project = { id: 2002, account_id: 10_001, name: 'shop', state: 1, connection: null, repository: null };
    expect((await ask('/projects/2002/')).body.data).toMatchObject(project);
    const environment = {
      ...{ id: 3002, account_id: 10_001, project_id: 2002, name: 'production', type: 'deployment', state: 1 },
      ...{ deployment_type: 'production', dbt_version: 'latest', connection: null, repository: null, project: null },
      created_at: expect.stringMatching(/\+00:00$/),
    };
    const ofVersion = version === 'v2' ? [] : null;
    const lists = { jobs: ofVersion, custom_environment_variables: ofVersion };
    expect((await ask('/environments/3002')).body.data).toMatchObject({ ...environment, ...lists });
    const inProject = await ask('/projects/2002/environments/3002/?include_related=project');
    expect(inProject.body.data).toMatchObject({ ...environment, project });
    expect((await ask('/environments/3001/')).body.data).toMatchObject({ deployment_type: null });
    const listed = await ask(`/projects/?order_by=-id&include_related=['environments','repository']`);
    expect(listed.body.data).toMatchObject([
      { id: 2002, environments: [environment], repository: null },
      { id: 2001, environments: [{ id: 3001 }] },
    ]);
    const one = await ask('/projects/2002/?include_related=environments');
    expect(one.body.data).toMatchObject({ id: 2002, environments: [environment] });
    expect((await ask('/projects/2002/')).body.data).toMatchObject({ environments: [] });
  });

  it.each([
    '/projects/2003/',
    '/projects/x',
    '/environments/3003',
    '/projects/2003/environments/',
    '/projects/2001/environments/3002/',
  ])('are 404 where there is none: %s', async (path) => {
    expect(await ask(path)).toMatchObject({ status: 404, body: { status: { code: 404 }, data: null } });
  });

  it.each(['projects/', 'projects/2002/', 'environments/', 'environments/3002/', 'projects/2002/environments/'])(
    "are another account's alone: %s",
    async (path) => {
      expect(await server.getAt(`/api/${version}/accounts/1/${path}`)).toMatchObject({ status: 404 });
    },
  );
});

describe('what a retry would go on from', () => {
  it('is the step that failed; what would come after it is known of runs that were started here alone', async () => {
    const { status, body } = await server.get('/runs/1002/retry/');
    expect([status, body.data]).toEqual([
      200,
      { failed_step: expect.stringMatching(/^dbt build --exclude tag:slow /), skipped_steps: [] },
    ]);
  });

  it.each([
    [1001, /The run succeeded/],
    [1005, /has not ended/],
  ])('is nothing of run %i', async (runId, message) => {
    const { status, body } = await server.get(`/runs/${runId}/retry`);
    expect([status, body.status.user_message]).toEqual([409, expect.stringMatching(message)]);
  });
});

describe.each(LARGE_SAMPLES)('the large run %s in the platform API', (sample) => {
  const number = FIRST_LARGE_RUN + LARGE_SAMPLES.indexOf(sample);
  const records = sampleRecords(sample);
  const logs = records.flatMap((record) => (record.recordType === 'LogRecord' && record.body !== '' ? [record] : []));
  const engine = records.findLast((record) => record.recordType === 'SpanEnd' && record.eventType.endsWith('.Process'));

  it('has the times, the verdict and the one step that the engine reported', async () => {
    if (engine?.recordType !== 'SpanEnd') throw new Error('the sample has no end');
    const time = (nano: UnixNano) => new Date(toUnixMs(nano)).toISOString().replace('T', ' ').replace('Z', '000+00:00');
    const { body } = await large.get(`/runs/${number}/?include_related=run_steps,job`);
    expect(body.data).toMatchObject({
      ...{ id: number, status: 20, is_error: true, is_complete: true, status_message: 'Executed with errors' },
      ...{ started_at: time(engine.startTimeUnixNano), finished_at: time(engine.endTimeUnixNano) },
      job: { name: 'adhoc' },
      run_steps: [{ index: 1, status: 20, run_id: number }],
    });
    const listed = (await large.get(`/runs/?order_by=id`)).body.data.find(({ id }: { id: number }) => id === number);
    expect(listed).toMatchObject({ status: 20, finished_at: body.data.finished_at });
  });

  it('has the end of what was logged, and says where the beginning is left out', async () => {
    const { body } = await large.get(`/runs/${number}/?include_related=run_steps,debug_logs`);
    const [step] = body.data.run_steps;
    const ended = logs.slice(-50).map(({ severityText, body: said }) => `${severityText}  ${said}`);
    expect(ended.filter((said) => !step.debug_logs.includes(said))).toEqual([]);
    const errors = logs.filter(({ severityNumber }) => severityNumber >= 17).map(({ body: said }) => said);
    expect(errors.length).toBeGreaterThan(1);
    expect(errors.filter((said) => !step.logs.includes(said))).toEqual([]);
    expect(step.logs.endsWith('\nExecuted with errors')).toBe(true);
    // 200,000 characters are kept, and the larger log is not read whole.
    expect(step.debug_logs.startsWith('… (the beginning is left out)\n')).toBe(sample === 'big-build-trace');
    expect(step.debug_logs.length).toBeLessThan(201_000);
    const { body: short } = await large.get(`/runs/${number}/?include_related=run_steps`);
    const [{ debug_logs: none, truncated_debug_logs: last }] = short.data.run_steps;
    expect([none, last.split('\n')]).toEqual(['', step.debug_logs.split('\n').slice(-1_000)]);
  });
});
