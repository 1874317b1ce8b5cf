import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunQuery } from '../../../src/platform/platform-api.js';
import type { PlatformRun } from '../../../src/platform/platform-run.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { SAMPLES } from '../../fake/sample-run.js';
import { untilTurned } from '../../tool/until.js';
import { Asking } from './asking.js';

const asking = Asking.forEachTest();
const ALWAYS = { jobId: null, createdFromUnixMs: 0, createdToUnixMs: Date.UTC(2030, 0) };

async function listed(query: Partial<RunQuery> = {}): Promise<readonly string[]> {
  const runs: PlatformRun[] = [];
  for await (const page of asking.api().listRuns({ ...ALWAYS, ...query }, asking.running)) runs.push(...page);
  return runs.map(({ runId }) => runId);
}

function problem(promise: Promise<unknown>): Promise<{ code: string; message: string }> {
  return promise.then(
    () => Promise.reject(new Error('it worked')),
    ({ code, message }) => ({ code, message }),
  );
}

function find(runId = '1', given: Parameters<Asking['api']>[0] = {}) {
  return asking.api(given).findRun(runId, asking.running);
}

describe('a run', () => {
  it('comes with its steps, their commands and whatever the platform says of it', async () => {
    asking.server.runs = [
      { id: 1, status: 20, steps: [{ name: 'Clone git repository' }, { status: 20 }, { status: 30 }, { status: 1 }] },
    ];
    expect(await find()).toEqual({
      runId: '1',
      jobId: '1',
      jobName: 'job 1',
      environmentId: '200',
      environmentName: 'Production',
      projectId: '300',
      status: 'Error',
      statusMessage: null,
      isComplete: true,
      hasArtifacts: true,
      gitSha: '0123456789abcdef0123456789abcdef01234567',
      gitBranch: 'main',
      href: `${asking.server.url}/deploy/70471823/projects/300/runs/1/`,
      cause: 'scheduled',
      createdUnixMs: Date.UTC(2026, 0, 2, 10, 32, 24, 326),
      startedUnixMs: Date.UTC(2026, 0, 2, 10, 32, 24, 326),
      finishedUnixMs: Date.UTC(2026, 0, 2, 10, 32, 24, 326),
      steps: [
        expect.objectContaining({ index: 1, command: null, outcome: 'success', stepId: '101' }),
        expect.objectContaining({ index: 2, command: 'dbt build', outcome: 'error' }),
        expect.objectContaining({ index: 3, outcome: 'canceled' }),
        expect.objectContaining({ index: 4, outcome: 'unfinished' }),
      ],
    });
    expect(asking.server.requests[0]).toMatchObject({ authorization: 'Token secret-token' });
  });

  it('is not complete while it is queued or running', async () => {
    asking.server.runs = [{ id: 1, status: 3 }];
    expect(await find()).toMatchObject({ isComplete: false, status: 'Running', steps: [] });
  });

  it('is read where the platform leaves out what it may leave out', async () => {
    asking.server.fault = () => ({
      status: 200,
      body: '{"status":{"code":200},"data":{"id":"99999999999999999","status":10}}',
    });
    expect(await find()).toMatchObject({ runId: '99999999999999999', status: 'Success', jobName: null, steps: [] });
  });
});

describe('a list of runs', () => {
  const manyRuns = (count: number) => Array.from({ length: count }, (_, at) => ({ id: at + 1 }));

  it('is read page by page to its end', async () => {
    asking.server.runs = manyRuns(250);
    expect(await listed()).toEqual(manyRuns(250).map(({ id }) => String(id)));
    expect(asking.server.requests.map(({ query }) => query.get('offset'))).toEqual(['0', '100', '200']);
  });

  it.each([0, 100, 249, 251, 100_000])('is read to its end when the platform says that there are %i', async (count) => {
    asking.server.runs = manyRuns(250);
    asking.server.totalCount = count;
    expect(await listed()).toHaveLength(250);
    expect(asking.server.requests.length).toBeLessThanOrEqual(4);
  });

  it('ends where every page is the same', async () => {
    asking.server.runs = manyRuns(100);
    const page = JSON.stringify({
      status: { code: 200 },
      data: [{ id: 5, status: 10 }],
      extra: { pagination: { total_count: 9e9 } },
    });
    asking.server.fault = () => ({ status: 200, body: page });
    expect(await listed()).toEqual(['5']);
  });

  it('holds the runs of one job, and of a time, also where the platform does not know the parameter', async () => {
    asking.server.runs = [
      { id: 1, jobId: 7 },
      { id: 2, jobId: 8, createdAt: '2026-02-01T00:00:00Z' },
      { id: 3, jobId: 8 },
    ];
    expect(await listed({ jobId: '8' })).toEqual(['2', '3']);
    for (const filtersTime of [true, false]) {
      asking.server.filtersTime = filtersTime;
      expect(await listed({ createdFromUnixMs: Date.UTC(2026, 0, 15) })).toEqual(['2']);
    }
  });
});

describe('the telemetry of a step', () => {
  const fetchStep = (index: number, maxBytes = 1e6) =>
    asking.api().fetchTelemetry('1', index, { path: join(asking.folder, 'file'), maxBytes }, asking.running);

  it('is downloaded as it is, and is null where there is none', async () => {
    asking.server.runs = [{ id: 1, steps: [{}, { telemetry: 'parse' }] }];
    const expected = readFileSync(join(SAMPLES, 'parse/otel.parquet'));
    expect(await fetchStep(2)).toBe(expected.byteLength);
    expect(readFileSync(join(asking.folder, 'file')).equals(expected)).toBe(true);
    expect(asking.server.requests[0]?.query.get('step')).toBe('2');
    expect(await fetchStep(1)).toBeNull();
  });

  it('is null where the platform answers null in JSON', async () => {
    asking.server.fault = () => ({ status: 200, body: '{"status":{"code":200,"is_success":true},"data":null}' });
    expect(await fetchStep(1)).toBeNull();
  });

  it('is asked for again where it is cut off', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    let count = 0;
    asking.server.fault = () => (++count < 3 ? { cutOff: true } : undefined);
    expect(await fetchStep(1)).toBe(readFileSync(join(SAMPLES, 'parse/otel.parquet')).byteLength);
    expect(count).toBe(3);
  });

  it('is refused where it is too large, before it is downloaded where its length is announced', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    expect(await problem(fetchStep(1, 1_000))).toEqual({
      code: 'tooLarge',
      message: `${asking.server.url}/api/v2/accounts/70471823/runs/1/artifacts/metadata/telemetry-1-otel.parquet: larger than 1000 bytes`,
    });
    expect(existsSync(join(asking.folder, 'file'))).toBe(false);
  });

  it('says when its file cannot be written', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
    const target = { path: join(asking.folder, 'none/file'), maxBytes: 1e6 };
    const asked = asking.api().fetchTelemetry('1', 1, target, asking.running);
    expect(await problem(asked)).toMatchObject({ code: 'disk', message: expect.stringContaining('none/file') });
  });
});

describe('a platform that does not answer', () => {
  it.each([408, 429, 500, 502, 503])('is asked again after %i', async (status) => {
    asking.server.runs = [{ id: 1 }];
    let count = 0;
    asking.server.fault = () => (++count < 4 ? { status } : undefined);
    expect(await find()).toMatchObject({ runId: '1' });
    expect(asking.logger.lines).toHaveLength(3);
  });

  it('is left alone as long as it asks for', async () => {
    const clock = new FakeClock();
    asking.server.runs = [{ id: 1 }];
    asking.server.fault = () =>
      asking.server.requests.length === 1 ? { status: 429, headers: { 'retry-after': '30' } } : undefined;
    const found = find('1', { clock });
    await untilTurned(() => asking.logger.lines.length === 1);
    expect(asking.logger.lines[0]?.fields).toMatchObject({ waitMs: 30_000 });
    clock.advance(29_999);
    expect(asking.server.requests).toHaveLength(1);
    clock.advance(1);
    expect(await found).toMatchObject({ runId: '1' });
  });

  it('is given up after eight attempts', async () => {
    asking.server.fault = () => ({ status: 503 });
    expect(await problem(find())).toEqual({
      code: 'unavailable',
      message: `${asking.server.url}/api/v2/accounts/70471823/runs/1/: it answered 503 (asked to fail). It was asked 8 times; pull again later`,
    });
    expect(asking.server.requests).toHaveLength(8);
  });

  it('is given up when it is silent for a minute, and asked again', async () => {
    const clock = new FakeClock();
    asking.server.runs = [{ id: 1 }];
    asking.server.fault = () => (asking.server.requests.length === 1 ? { silent: true } : undefined);
    const found = find('1', { clock });
    await untilTurned(() => asking.server.requests.length === 1);
    clock.advance(60_000);
    await untilTurned(() => asking.logger.lines.length === 1);
    expect(asking.logger.lines[0]?.fields).toMatchObject({ reason: 'silent for 60 s' });
    clock.advance(10);
    expect(await found).toMatchObject({ runId: '1' });
  });

  it('is reported at once where it never answered and looks like a wrong address', async () => {
    const gone = http.createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
    await new Promise((resolve) => gone.close(resolve));
    const { code, message } = await problem(find('1', { url }));
    expect(code).toBe('unavailable');
    expect(message).toMatch(/ECONNREFUSED.*Check the address \(--base-url\) and the network/);
    expect(asking.logger.lines).toEqual([]);
  });

  it('keeps nobody who stops', async () => {
    asking.server.fault = () => ({ silent: true });
    const stop = new AbortController();
    const found = asking.api().findRun('1', stop.signal);
    await untilTurned(() => asking.server.requests.length === 1);
    stop.abort();
    await expect(found).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('a platform that refuses', () => {
  it('a token: says where tokens come from, and never which it was', async () => {
    const { code, message } = await problem(find('1', { token: 'wrong-one' }));
    expect(code).toBe('unauthorized');
    expect(message).toMatch(/answered 401 \(Invalid token\.\)\. Set RUN_BRIDGE_PLATFORM_TOKEN to a token/);
    expect(message).not.toContain('wrong-one');
    expect(asking.server.requests).toHaveLength(1);
  });

  it('a run: tells it from an account that is not there', async () => {
    expect(await problem(find('5'))).toEqual({
      code: 'notFound',
      message: "there is no run 5 in account 70471823. Check the number (it is in the address of the run's page)",
    });
    expect(await problem(find('5', { accountId: '99' }))).toEqual({
      code: 'notFound',
      message:
        "there is no account 99, or the token may not see it. Check --account (the number in the platform's addresses) and RUN_BRIDGE_PLATFORM_TOKEN",
    });
  });

  it('with an error in an answer of 200', async () => {
    const body = JSON.stringify({ status: { code: 403, is_success: false, user_message: 'No.' }, data: null });
    asking.server.fault = () => ({ status: 200, body });
    expect(await problem(find())).toMatchObject({ code: 'refused', message: expect.stringContaining('403 (No.)') });
  });

  it.each([
    ['what is no JSON', '<html>sign in</html>', /is not JSON\. Check that --base-url/],
    ['another envelope', '{"runs":[]}', /is not the platform's \(data: .*\)\. Check that --base-url/],
    ['a run without an id', '{"status":{"code":200},"data":{"status":10}}', /is not the platform's \(data\.id: .*\)/],
  ])('with %s', async (_, body, message) => {
    asking.server.fault = () => ({ status: 200, body });
    expect(await problem(find())).toMatchObject({ code: 'malformed', message: expect.stringMatching(message) });
  });

  it('with a redirect: the token goes nowhere else', async () => {
    const location = 'https://elsewhere.example/login';
    asking.server.fault = () => ({ status: 302, headers: { location } });
    const { code, message } = await problem(find());
    expect(code).toBe('refused');
    expect(message).toContain(`It points to ${location}; the token is not sent there`);
    expect(asking.server.requests).toHaveLength(1);
  });
});
