import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { artifactRouter } from '../../../src/artifact/downloads.js';
import { FolderArtifactStore } from '../../../src/artifact/folder-artifact-store.js';
import { RunArtifacts } from '../../../src/artifact/run-artifacts.js';
import { uploadRouter } from '../../../src/artifact/uploads.js';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { parseArtifactPath } from '../../../src/storage/artifacts.js';
import type { CatalogInvocation, CatalogStep, RunQuery } from '../../../src/storage/run-catalog.js';
import { ApiServer } from '../../fake/api-server.js';
import { type Sending, send } from '../../fake/http-client.js';

const RUN = 1001;
const JOB = 4001;
const TRACE = 'aa'.repeat(16);
const BASE = `/api/v2/accounts/${FIRST_ACCOUNT_ID}/runs/${RUN}/artifacts`;
const UPLOAD = `/api/run-bridge/v1/runs/${RUN}/artifacts`;
const PARQUET = Buffer.from('PAR1 not really, but byte by byte PAR1');

let server: ApiServer;
let store: FolderArtifactStore;
let token: string;
let lookups: number;
let shortage: { message: string; retryAfterMs: number } | undefined;

async function open(): Promise<void> {
  shortage = undefined;
  lookups = 0;
  server = await ApiServer.open(({ folder, logger }) => {
    store = new FolderArtifactStore(join(folder, 'artifacts'), false);
    const openStore = async () => store;
    const artifacts = new RunArtifacts({
      catalog: catalogOf([step(1, 1), step(2, 0), step(3, 2)]),
      openStore,
      dataFolder: folder,
    });
    const limits = { maxFileBytes: 100, maxCount: 3, maxTotalBytes: 250 };
    const guard = { findShortage: () => shortage };
    return [artifactRouter({ artifacts, logger }), uploadRouter(limits, { artifacts, openStore, guard, logger })];
  });
  token = await server.token();
}

/** A run of these steps, of the first account. */
function catalogOf(steps: readonly CatalogStep[]) {
  const isMine = (accountId: number, runId: number) => accountId === FIRST_ACCOUNT_ID && runId === RUN;
  return {
    findRun: async (accountId: number, runId: number) =>
      isMine(accountId, runId) ? ({ id: RUN } as never) : undefined,
    stepsOf: async () => {
      lookups += 1;
      return steps;
    },
    listRuns: async (accountId: number, { jobName, statuses = [] }: RunQuery) => {
      const isFound = accountId === FIRST_ACCOUNT_ID && jobName === 'nightly' && statuses.length > 1;
      return { items: isFound ? [{ id: RUN } as never] : [], totalCount: 0 };
    },
    latestRunsOf: async (accountId: number) =>
      new Map(
        accountId === FIRST_ACCOUNT_ID
          ? [
              [JOB, { latest: RUN + 1, completed: RUN }],
              [JOB + 1, { latest: RUN, completed: null }],
            ]
          : [],
      ),
  };
}

function step(index: number, commandCount: number): CatalogStep {
  const traceId = parseTraceId(TRACE);
  if (traceId === undefined) throw new Error('no trace id');
  const invocations = Array.from({ length: commandCount }, (_, at): CatalogInvocation => {
    const parquetFile = at === 0 ? 'telemetry.parquet' : `telemetry-${at + 1}.parquet`;
    return { traceId, index: at + 1, command: 'build', verdict: 'success', parquetFile, isSaved: true };
  });
  const times = { createdUnixMs: 1, updatedUnixMs: 1, startedUnixMs: 1, finishedUnixMs: 1 };
  const ids = { id: 5000 + index, stepId: `step-${index}`, runId: RUN, accountId: FIRST_ACCOUNT_ID, index };
  return { ...ids, ...times, status: 10, statusMessage: null, artifacts: null, command: ['dbt', 'build'], invocations };
}

async function keep(path: string, content: string, stepIndex = 3): Promise<void> {
  const parsed = parseArtifactPath(path);
  if (parsed === undefined) throw new Error(`${path} is no path`);
  await store.put({ runId: RUN, stepIndex, path: parsed }, Readable.from([Buffer.from(content)]));
}

function ask(path: string, sending: Partial<Sending> = {}, given = token) {
  const headers = { Authorization: `Token ${given}`, ...sending.headers };
  return send(server.port, { method: 'GET', ...sending, path, headers });
}

const jsonOf = ({ body }: { body: Buffer }): { status: { code: number; user_message: string }; data: unknown } =>
  JSON.parse(body.toString());
const dataOf = async (path: string) => jsonOf(await ask(path)).data;

describe('what is there', () => {
  beforeAll(open);
  afterEach(() => store.removeRun(RUN));
  afterAll(() => server.close());

  describe('the list of artifacts', () => {
    it("is that of the last step, or of the one that is asked for, with the step's telemetry", async () => {
      await keep('run_results.json', '{}');
      await keep('compiled/shop/a.sql', 'select 1');
      await keep('manifest.json', '{}', 1);
      const last = [
        'compiled/shop/a.sql',
        'metadata/telemetry-3-otel-2.parquet',
        'metadata/telemetry-3-otel.parquet',
        'run_results.json',
      ];
      expect(await dataOf(BASE)).toEqual(last);
      expect(await dataOf(`${BASE}/`)).toEqual(last);
      expect(await dataOf(`${BASE}/?step=3`)).toEqual(last);
      expect(await dataOf(`${BASE}/?step=1`)).toEqual(['manifest.json', 'metadata/telemetry-1-otel.parquet']);
    });

    it('is empty where there are none', async () => {
      const answer = await ask(`${BASE}/?step=2`);
      expect(answer.status).toBe(200);
      expect(jsonOf(answer)).toMatchObject({ status: { code: 200, user_message: 'Success!' }, data: [] });
    });

    it.each([
      [`${BASE}/?step=4`, 404],
      [`/api/v2/accounts/${FIRST_ACCOUNT_ID}/runs/404/artifacts/`, 404],
      [`/api/v2/accounts/${FIRST_ACCOUNT_ID}/runs/x/artifacts/`, 404],
      [`/api/v2/accounts/1/runs/${RUN}/artifacts/`, 404],
      [`${BASE}/?step=0`, 400],
      [`${BASE}/?step=last`, 400],
      [`${BASE}/?step=1&step=2`, 400],
    ])('%s is %i, in the envelope', async (path, status) => {
      const answer = await ask(path);
      expect(answer.status).toBe(status);
      expect(jsonOf(answer)).toMatchObject({ status: { code: status, is_success: false }, data: null });
    });
  });

  describe("an artifact of a job's latest run that is over", () => {
    const ofJob = (path: string, job = JOB) => `/api/v2/accounts/${FIRST_ACCOUNT_ID}/jobs/${job}/artifacts/${path}`;

    it('is the raw file of its last step, or of the one that is asked for', async () => {
      await keep('run_results.json', '{"a":1}');
      await keep('manifest.json', '{}', 1);
      const answer = await ask(ofJob('run_results.json'));
      expect([answer.status, answer.headers['content-type'], answer.body.toString()]).toEqual([
        200,
        'application/json; charset=utf-8',
        '{"a":1}',
      ]);
      expect((await ask(`${ofJob('manifest.json')}?step=1`)).status).toBe(200);
    });

    it.each([
      ['no such artifact', ofJob('manifest.json')],
      ['no run that is over', ofJob('run_results.json', JOB + 1)],
      ['no such job', ofJob('run_results.json', JOB + 2)],
      ['no number', `/api/v2/accounts/${FIRST_ACCOUNT_ID}/jobs/x/artifacts/run_results.json`],
    ])('is 404 where there is %s', async (_name, path) => {
      await keep('run_results.json', '{}');
      expect((await ask(path)).status).toBe(404);
    });
  });

  describe('an artifact of a job by its name', () => {
    const ofJob = (query: string) => ask(`/api/run-bridge/v1/artifacts/manifest.json?${query}`);

    it('is the raw file of the last step that has it, whose address comes with it', async () => {
      await keep('manifest.json', '{"step":1}', 1);
      await keep('manifest.json', '{"step":2}', 2);
      const answer = await ofJob('job=nightly');
      expect([answer.status, answer.body.toString()]).toEqual([200, '{"step":2}']);
      expect(answer.headers).toMatchObject({
        'content-location': `${BASE}/manifest.json?step=2`,
        'content-type': 'application/json; charset=utf-8',
      });
      const again = await ask(String(answer.headers['content-location']), { headers: { 'If-None-Match': '*' } });
      expect(again.status).toBe(304);
    });

    it.each([
      ['job=nightly', 404, 'None of the last 50 runs of job "nightly" that ended has the artifact manifest.json.'],
      [
        'job=nightly&last_good=true',
        404,
        'None of the last 50 runs of job "nightly" that ended with success has the artifact',
      ],
      ['', 400, 'job: '],
      ['job=a&job=b', 400, 'job: '],
      ['job=nightly&last_good=yes', 400, 'last_good: '],
    ])('asked for with %j is %i in words where there is none', async (query, status, message) => {
      const answer = await ofJob(query);
      expect(answer.status).toBe(status);
      expect(jsonOf(answer).status.user_message).toContain(message);
    });
  });

  describe('an artifact', () => {
    it('is the raw file, with its type and a name to save it under', async () => {
      await keep('compiled/shop/ä "b".sql', 'select 1');
      const answer = await ask(`${BASE}/compiled/shop/%C3%A4%20%22b%22.sql`);
      expect(answer.status).toBe(200);
      expect(answer.body.toString()).toBe('select 1');
      expect(answer.headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'content-length': '8',
        'accept-ranges': 'bytes',
        'x-content-type-options': 'nosniff',
      });
      expect(answer.headers['content-disposition']).toBe(
        `attachment; filename="? \\"b\\".sql"; filename*=UTF-8''%C3%A4%20%22b%22.sql`,
      );
    });

    it.each([
      ['manifest.json', 'application/json; charset=utf-8'],
      ['dbt.log', 'text/plain; charset=utf-8'],
      ['index.html', 'application/octet-stream'],
      ['x.svg', 'application/octet-stream'],
    ])('called %s is %s', async (name, type) => {
      await keep(name, 'x');
      const answer = await ask(`${BASE}/${name}`);
      expect(answer.headers['content-type']).toBe(type);
    });

    it('of telemetry is the Parquet file of the run, byte by byte', async () => {
      const folder = join(server.folder, 'runs', TRACE);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'telemetry.parquet'), PARQUET);
      writeFileSync(join(folder, 'telemetry-2.parquet'), 'the second');
      for (const path of [
        'telemetry-1-otel.parquet?step=1',
        'telemetry-1-otel.parquet',
        'telemetry-3-otel.parquet?step=3',
      ]) {
        const answer = await ask(`${BASE}/metadata/${path}`);
        expect(answer.status).toBe(200);
        expect(answer.headers['content-type']).toBe('application/x-parquet');
        expect(answer.body).toEqual(readFileSync(join(folder, 'telemetry.parquet')));
      }
      expect((await ask(`${BASE}/metadata/telemetry-3-otel-2.parquet`)).body.toString()).toBe('the second');
    });

    it.each([
      'metadata/telemetry-2-otel.parquet?step=2',
      'metadata/telemetry-1-otel.parquet?step=3',
      'metadata/telemetry-3-otel-3.parquet?step=3',
      'nowhere.json',
      'run_results.json?step=1',
    ])('%s is 404 in the envelope where the step has none', async (path) => {
      await keep('run_results.json', '{}');
      const answer = await ask(`${BASE}/${path}`);
      expect(answer.status).toBe(404);
      expect(jsonOf(answer)).toMatchObject({ status: { code: 404, is_success: false }, data: null });
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
    });

    it.each([
      '..%2F..%2F..%2Fstate.db',
      '%2e%2e/%2e%2e/%2e%2e/state.db',
      '..%5c..%5cstate.db',
      '%2Fetc%2Fpasswd',
      '/etc/passwd',
      'x/..%2f..%2f..%2fstate.db',
      '%252e%252e%252fstate.db',
      'a%00b',
      '3%2Fmanifest.json%0a',
    ])('%s leads nowhere', async (path) => {
      expect((await ask(`${BASE}/${path}`)).status).toBe(404);
    });

    it('with a name that is no UTF-8 is 400', async () => {
      expect((await ask(`${BASE}/%ff`)).status).toBe(400);
    });

    it('may be asked for with its slashes encoded, and with a slash behind it', async () => {
      await keep('run/shop/a.sql', 'select 1');
      expect((await ask(`${BASE}/run%2Fshop%2Fa.sql`)).body.toString()).toBe('select 1');
      expect((await ask(`${BASE}/run/shop/a.sql/`)).body.toString()).toBe('select 1');
    });

    it('may be asked about with HEAD', async () => {
      await keep('manifest.json', '{"a": 1}');
      const answer = await ask(`${BASE}/manifest.json`, { method: 'HEAD' });
      expect(answer.status).toBe(200);
      expect(answer.headers['content-length']).toBe('8');
      expect(answer.body).toHaveLength(0);
    });

    it('is not sent again to who has it', async () => {
      await keep('manifest.json', '{}');
      const etag = String((await ask(`${BASE}/manifest.json`)).headers.etag);
      const again = await ask(`${BASE}/manifest.json`, { headers: { 'If-None-Match': `"other", ${etag}` } });
      expect([again.status, again.body.length]).toEqual([304, 0]);
      await keep('manifest.json', '{"other": 1}');
      expect((await ask(`${BASE}/manifest.json`, { headers: { 'If-None-Match': etag } })).status).toBe(200);
    });

    it.each([
      ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
      ['bytes=8-', 206, '89', 'bytes 8-9/10'],
      ['bytes=-2', 206, '89', 'bytes 8-9/10'],
      ['bytes=0-999', 206, '0123456789', 'bytes 0-9/10'],
      ['bytes=0-1,4-5', 200, '0123456789', undefined],
      ['lines=0-1', 200, '0123456789', undefined],
      ['nonsense', 200, '0123456789', undefined],
    ])('asked for as %s is %i', async (range, status, content, contentRange) => {
      await keep('a.sql', '0123456789');
      const answer = await ask(`${BASE}/a.sql`, { headers: { Range: range } });
      expect(answer.status).toBe(status);
      expect(answer.body.toString()).toBe(content);
      expect(answer.headers['content-range']).toBe(contentRange);
      expect(answer.headers['content-length']).toBe(String(content.length));
    });

    it('has no range behind its end', async () => {
      await keep('a.sql', '0123456789');
      const answer = await ask(`${BASE}/a.sql`, { headers: { Range: 'bytes=10-' } });
      expect(answer.status).toBe(416);
      expect(answer.headers['content-range']).toBe('bytes */10');
      expect(jsonOf(answer).status.code).toBe(416);
    });

    it('is given whole where a range was asked of another content', async () => {
      await keep('a.sql', '0123456789');
      const etag = String((await ask(`${BASE}/a.sql`)).headers.etag);
      const part = (before: string) => ask(`${BASE}/a.sql`, { headers: { Range: 'bytes=0-1', 'If-Range': before } });
      expect((await part(etag)).status).toBe(206);
      expect((await part('"another"')).status).toBe(200);
    });
  });
});

describe('an upload', () => {
  beforeEach(open);
  afterEach(() => server.close());

  const put = (path: string, body: Sending['body'] = Buffer.from('{}'), given = token) =>
    ask(`${UPLOAD}/${path}`, { method: 'PUT', body }, given);

  it('has its step looked up once, for as many as come in a row', async () => {
    for (const name of ['a', 'b', 'c']) {
      expect((await put(`${name}.json?step=1`, Buffer.from('x'))).status).toBe(201);
    }
    expect(lookups).toBe(1);
    expect((await put('a.json?step=9')).status).toBe(404);
  });

  it('is kept as an artifact of its step', async () => {
    const answer = await put('run/shop/a%20b.sql?step=2', [Buffer.from('select'), Buffer.from(' 1')]);
    expect(answer.status).toBe(201);
    expect(jsonOf(answer).data).toEqual({ path: 'run/shop/a b.sql', step: 2, size_bytes: 8 });
    expect((await ask(`${BASE}/run/shop/a%20b.sql?step=2`)).body.toString()).toBe('select 1');
    expect(await dataOf(`${BASE}/?step=2`)).toEqual(['run/shop/a b.sql']);
  });

  it.each([
    ['a.json', 400, /^step: must name the step of the artifact/],
    ['a.json?step=x', 400, /^step: must be/],
    ['..%2Fa.json?step=1', 400, /^path: must be names/],
    ['metadata/telemetry-1-otel.parquet?step=1', 400, /run-bridge makes itself/],
    ['a.json?step=9', 404, /not found/],
  ])('to %s is %i', async (path, status, message) => {
    const answer = await put(path);
    expect(answer.status).toBe(status);
    expect(jsonOf(answer).status.user_message).toMatch(message);
  });

  it('that is too large is 413 and leaves nothing, announced or not', async () => {
    for (const body of [Buffer.alloc(101), [Buffer.alloc(60), Buffer.alloc(60)]]) {
      const answer = await put('a.json?step=1', body);
      expect(answer.status).toBe(413);
      expect(jsonOf(answer).status.user_message).toBe(
        'An artifact may have 100 bytes: --max-artifact-bytes allows more.',
      );
    }
    expect(await store.list(RUN, 1)).toEqual([]);
  });

  it('is refused where the step has as many, or as much, as it may have; one in the place of another is not', async () => {
    for (const name of ['a', 'b']) expect((await put(`${name}?step=1`, Buffer.alloc(100))).status).toBe(201);
    const much = await put('c?step=1', Buffer.alloc(51));
    expect([much.status, jsonOf(much).status.user_message]).toEqual([
      413,
      "With this, the step's artifacts would be larger than 250 bytes together.",
    ]);
    expect((await put('c?step=1', [Buffer.alloc(30), Buffer.alloc(21)])).status).toBe(413);
    expect((await put('c?step=1', Buffer.alloc(50))).status).toBe(201);
    expect((await put('c?step=1', Buffer.alloc(49))).status).toBe(201);
    const many = await put('d?step=1', Buffer.alloc(1));
    expect(jsonOf(many).status.user_message).toBe('The step has 3 artifacts, the maximum.');
  });

  it('is 507 in the words of the disk guard while the disk takes no more', async () => {
    shortage = { message: 'The disk is nearly full.', retryAfterMs: 5_000 };
    const answer = await put('a.json?step=1');
    expect([answer.status, jsonOf(answer).status.user_message]).toEqual([507, 'The disk is nearly full.']);
    expect(answer.headers['retry-after']).toBe('5');
  });

  it('is 409 where its name is a folder of others', async () => {
    await put('run/a.sql?step=1');
    expect((await put('run?step=1')).status).toBe(409);
  });

  it('needs a token that may write', async () => {
    expect((await put('a.json?step=1', undefined, await server.token('read_only'))).status).toBe(403);
    expect((await put('a.json?step=1', undefined, 'wrong')).status).toBe(401);
    expect((await ask(BASE, {}, await server.token('webhooks_only'))).status).toBe(403);
  });
});
