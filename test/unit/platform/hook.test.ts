import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Health } from '../../../src/core/health.js';
import { platformHook } from '../../../src/platform/hook.js';
import type { HostedRunKey, PullStore } from '../../../src/platform/pull-store.js';
import { StoreError } from '../../../src/storage/store-error.js';
import { platformHookOff } from '../../../src/web/platform-hook-off.js';
import { WebServer } from '../../../src/web/web-server.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RawConnection, send } from '../../fake/http-client.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const SECRET = 'd3b0738a';
/** As the specification of webhooks has it. */
const COMPLETED = {
  accountId: 1,
  webhookId: 'wsu_12345abcde',
  eventId: 'wev_2L6ZDoilyiWzKkSA59Gmc2d7FDD',
  timestamp: '2023-01-31T19:29:35.789265936Z',
  eventType: 'job.run.completed',
  webhookName: 'test',
  data: { jobId: '123', jobName: 'Daily', runId: '12345', runStatus: 'Success', runStatusCode: 10 },
};

let noted: HostedRunKey[];
let wakeCount: number;
let add: PullStore['add'];
let logger: RecordingLogger;
let server: WebServer;
beforeEach(async () => {
  [noted, wakeCount, logger] = [[], 0, new RecordingLogger()];
  add = async (keys) => noted.push(...keys) > 0;
  const store = { add: (...given: Parameters<PullStore['add']>) => add(...given) } as PullStore;
  const config = { platform: 'https://platform.example', secret: SECRET, accountId: null, maxWaiting: 5 };
  const onNoted = () => {
    wakeCount += 1;
  };
  await start(platformHook(config, { store, onNoted, clock: new FakeClock(), logger }));
});
afterEach(() => server.shutdown(AbortSignal.abort()));

async function start(router: ReturnType<typeof platformHook>): Promise<void> {
  await server?.shutdown(AbortSignal.abort());
  server = new WebServer({ host: '127.0.0.1', port: 0 }, { logger, health: new Health(), routers: [router] });
  await server.start();
}

function sign(body: string): string {
  return createHmac('sha256', SECRET).update(body).digest('hex');
}

async function post(body: string, authorization = sign(body), path = '/hooks/platform') {
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await send(server.address.port, { path, headers, body: Buffer.from(body) });
  return { status: answer.status, text: answer.body.toString(), headers: answer.headers };
}

describe('a webhook', () => {
  it('of a completed run notes it, wakes what brings it in, and is answered 202', async () => {
    expect(await post(JSON.stringify(COMPLETED))).toMatchObject({ status: 202 });
    expect(await post(JSON.stringify(COMPLETED), undefined, '/hooks/platform/')).toMatchObject({ status: 202 });
    const key = { platform: 'https://platform.example', accountId: '1', runId: '12345' };
    expect([noted, wakeCount]).toEqual([[key, key], 2]);
  });

  it.each([
    ['no signature', ''],
    ['that of another secret', createHmac('sha256', 'x').update(JSON.stringify(COMPLETED)).digest('hex')],
    ['that of another body', sign('{}')],
    ['a scheme before it', `Bearer ${sign(JSON.stringify(COMPLETED))}`],
    ['half of it', sign(JSON.stringify(COMPLETED)).slice(0, 32)],
    ['zeros', '0'.repeat(64)],
  ])('with %s is answered 401 and has no effect', async (_, authorization) => {
    const { status, text } = await post(JSON.stringify(COMPLETED), authorization);
    expect([status, noted]).toEqual([401, []]);
    expect(text).toContain('RUN_BRIDGE_PLATFORM_HOOK_SECRET');
    expect(text).not.toContain(SECRET);
  });

  it.each(['job.run.started', 'job.run.errored'])('%s has no effect', async (eventType) => {
    expect(await post(JSON.stringify({ ...COMPLETED, eventType }))).toMatchObject({ status: 200 });
    expect(noted).toEqual([]);
  });

  it.each([
    ['no JSON', 'hello', 400],
    ['an empty body', '', 400],
    ['a list', '[]', 400],
    ['no run', JSON.stringify({ ...COMPLETED, data: {} }), 200],
    ['a run that is no number', JSON.stringify({ ...COMPLETED, data: { runId: '../../x' } }), 200],
  ])('with %s has no effect', async (_, body, status) => {
    expect(await post(body)).toMatchObject({ status });
    expect(noted).toEqual([]);
  });

  it('is read with the ids as numbers and as texts', async () => {
    await post(JSON.stringify({ ...COMPLETED, accountId: '70471823412345678', data: { runId: 9 } }));
    expect(noted).toMatchObject([{ accountId: '70471823412345678', runId: '9' }]);
  });

  it('that finds no room is answered 503, and comes again', async () => {
    add = async () => false;
    const { status, headers, text } = await post(JSON.stringify(COMPLETED));
    expect([status, headers['retry-after']]).toEqual([503, '60']);
    expect(text).toContain('5 runs are waiting');
    expect(wakeCount).toBe(0);
  });

  it('that cannot be noted is answered 503', async () => {
    add = () => Promise.reject(new StoreError('full', 'the disk is full'));
    expect(await post(JSON.stringify(COMPLETED))).toMatchObject({ status: 503 });
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { reason: 'the disk is full' } }]);
  });

  it('of more than 64 KiB is answered 413', async () => {
    expect(await post(JSON.stringify({ ...COMPLETED, filler: 'x'.repeat(70_000) }))).toMatchObject({ status: 413 });
  });

  it('of another account is answered 403 where only one is taken', async () => {
    const store = { add: (...given: Parameters<PullStore['add']>) => add(...given) } as PullStore;
    const config = { platform: 'https://platform.example', secret: SECRET, accountId: '2', maxWaiting: 5 };
    await start(platformHook(config, { store, onNoted: () => {}, clock: new FakeClock(), logger }));
    expect(await post(JSON.stringify(COMPLETED))).toMatchObject({ status: 403 });
    expect(await post(JSON.stringify({ ...COMPLETED, accountId: 2 }))).toMatchObject({ status: 202 });
  });

  it('waits for its turn where too many come at a time', async () => {
    const head = 'POST /hooks/platform HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{';
    const open = await Promise.all(Array.from({ length: 32 }, () => RawConnection.open(server.address.port)));
    for (const connection of open) connection.write(head);
    // Written in order, yet each connection is read on its own.
    for (let { status } = await post(JSON.stringify(COMPLETED)); status !== 503; ) {
      ({ status } = await post(JSON.stringify(COMPLETED)));
    }
    for (const connection of open) connection.destroy();
    for (let { status } = await post(JSON.stringify(COMPLETED)); status !== 202; ) {
      ({ status } = await post(JSON.stringify(COMPLETED)));
    }
  });
});

it('takes nothing but POST', async () => {
  const answer = await send(server.address.port, { method: 'GET', path: '/hooks/platform' });
  expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
});

it('says what is to be set where it is off', async () => {
  await start(platformHookOff(['RUN_BRIDGE_PLATFORM_HOOK_SECRET', '--platform-url']));
  expect(await post(JSON.stringify(COMPLETED))).toMatchObject({
    status: 404,
    text: 'Webhooks of the hosted platform are off: set RUN_BRIDGE_PLATFORM_HOOK_SECRET and --platform-url.\n',
  });
});
