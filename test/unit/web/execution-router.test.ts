import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { send } from '../../fake/http-client.js';
import { RegistryServer } from '../../fake/registry-server.js';

const STEP = '/api/run-bridge/v1/executions/steps/a';
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const START = { command: ['dbt', 'build'], started_unix_ms: 1_000 };

let server: RegistryServer;
beforeEach(async () => {
  server = await RegistryServer.open();
});
afterEach(() => server.close());

async function ask(method: string, path: string, body?: unknown, type = 'application/json') {
  const headers = body === undefined ? {} : { 'Content-Type': type };
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? '');
  const sending = body === undefined ? {} : { body: Buffer.from(text) };
  const answer = await send(server.port, { method, path, headers, ...sending });
  return { status: answer.status, body: answer.body.length === 0 ? undefined : JSON.parse(answer.body.toString()) };
}

describe('the API of runs', () => {
  it('takes a step from its beginning to its end, with defaults for all that is not said', async () => {
    const ids = { account_id: 10_001, job_id: expect.any(Number), project_id: expect.any(Number) };
    expect(await ask('PUT', STEP, START)).toEqual({
      status: 200,
      body: { run_id: 1001, step_index: 1, job: 'adhoc', reason: null, ...ids, environment_id: expect.any(Number) },
    });
    expect((await ask('PUT', `${STEP}/traces/${TRACE_ID}`)).status).toBe(204);
    const end = { ending: { kind: 'killed', signal: 'SIGKILL' }, ended_unix_ms: 2_000 };
    expect((await ask('PUT', `${STEP}/end`, end)).status).toBe(204);
    expect(await server.store.findStep('a')).toMatchObject({
      ending: { kind: 'killed', signal: 'SIGKILL' },
      traceCount: 1,
      run: { state: 'finished', runKey: null },
    });
  });

  it('finishes a run, and says what became of it', async () => {
    await ask('PUT', STEP, { ...START, run_key: 'night', job: 'nightly' });
    const finish = { run_key: 'night' };
    const path = '/api/run-bridge/v1/executions/finish';
    expect(await ask('POST', path, finish)).toMatchObject({ status: 200, body: { kind: 'closing', running_count: 1 } });
    await ask('PUT', `${STEP}/end`, { ending: { kind: 'exited', exit_code: 1 }, ended_unix_ms: 2_000 });
    expect(await ask('POST', path, finish)).toMatchObject({
      status: 200,
      body: { kind: 'already_finished', run: { job: 'nightly', step_count: 1, failed_step_count: 1 } },
    });
    expect(await ask('POST', path, { run_key: 'noon' })).toEqual({
      status: 404,
      body: { error: { code: 'unknown_run', message: 'no run "noon" is known' } },
    });
  });

  it.each([
    ['a body that is no JSON', 'PUT', STEP, '{', 400, /^the request cannot be read: /],
    ['a body of another kind', 'PUT', STEP, 'a=b', 415, /^send a body with Content-Type: application\/json$/],
    ['no body', 'PUT', STEP, undefined, 415, /^send a body with/],
    ['a command that is missing', 'PUT', STEP, { started_unix_ms: 1 }, 400, /^command: /],
    ['a field that there is not', 'PUT', STEP, { ...START, jop: 'x' }, 400, /jop/],
    ['a name without a letter', 'PUT', STEP, { ...START, job: ' ' }, 400, /^job: /],
    ['an id that is none', 'PUT', `${STEP}%20b`, START, 400, /1 to 100 letters/],
    [
      'a body that is too large',
      'PUT',
      STEP,
      { ...START, reason: 'x'.repeat(300_000) },
      413,
      /larger than 262144 bytes/,
    ],
    ['a trace id that is none', 'PUT', `${STEP}/traces/xyz`, undefined, 400, /32 hexadecimal/],
    ['a step that never began', 'PUT', `${STEP}/traces/${TRACE_ID}`, undefined, 404, /^step a is not registered/],
    [
      'an ending of no known kind',
      'PUT',
      `${STEP}/end`,
      { ending: { kind: 'x' }, ended_unix_ms: 1 },
      400,
      /^ending\.kind: /,
    ],
    ['another path', 'GET', '/api/run-bridge/v1/executions/7', undefined, 404, /is not a route of this API$/],
  ] as const)('refuses %s, and says why', async (_what, method, path, body, status, message) => {
    const type = body === 'a=b' ? 'application/x-www-form-urlencoded' : 'application/json';
    const answer = await ask(method, path, body, type);
    expect(answer).toMatchObject({ status, body: { error: { message: expect.stringMatching(message) } } });
    expect(await server.store.listRunning()).toEqual([]);
  });
});
