import { Router } from 'express';
import { afterEach, expect, test } from 'vitest';
import { Health } from '../../../src/core/health.js';
import { WebServer } from '../../../src/web/web-server.js';
import { type Answer, send } from '../../fake/http-client.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const logger = new RecordingLogger();
let server: WebServer | undefined;
afterEach(() => server?.shutdown(AbortSignal.abort()));

async function start(
  health = new Health(),
  routers: readonly Router[] = [],
): Promise<(path: string) => Promise<Answer>> {
  const started = new WebServer({ host: '127.0.0.1', port: 0 }, { logger, health, routers });
  server = started;
  await started.start();
  return (path) => send(started.address.port, { method: 'GET', path });
}

test.each(['/graphql', '/graphql/', '/beta/graphql'])(
  'a question to the Discovery API is answered in words: %s',
  async (path) => {
    await start();
    const answer = await fetch(`${server?.address.url}${path}`, { method: 'POST', body: '{"query":"{ job { id } }"}' });
    expect(answer.status).toBe(404);
    const message = expect.stringContaining('no Discovery API');
    expect(await answer.json()).toMatchObject({
      status: { code: 404, is_success: false, user_message: message },
      errors: [{ message }],
    });
  },
);

test('GET / says what this is and where to look', async () => {
  const get = await start();
  const answer = await get('/');
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toMatch(/^text\/plain/);
  expect(answer.body.toString()).toMatch(/\/healthz.*\/readyz.*\/v1\/traces/s);
  expect(answer.headers).not.toHaveProperty('x-powered-by');
  expect(answer.headers).not.toHaveProperty('etag');
});

test('a live process is alive, ready or not', async () => {
  const health = new Health();
  health.register('disk', () => ({ ready: false, reason: 'full; delete something' }));
  const get = await start(health);
  expect(await get('/healthz')).toMatchObject({ status: 200, body: Buffer.from('alive\n') });
  expect(await get('/readyz')).toMatchObject({ status: 503, body: Buffer.from('disk: full; delete something\n') });
});

test('readyz is 200 when every check is, and ?verbose lists them', async () => {
  const health = new Health();
  health.register('disk', () => ({ ready: true, details: { freeBytes: 7 } }));
  const get = await start(health);
  expect(await get('/readyz')).toMatchObject({ status: 200, body: Buffer.from('ready\n') });
  const verbose = JSON.parse((await get('/readyz?verbose')).body.toString());
  expect(verbose).toMatchObject({ ready: true });
  expect(verbose.checks).toContainEqual({ name: 'disk', ready: true, details: { freeBytes: 7 } });
  expect(verbose.checks).toContainEqual(expect.objectContaining({ name: 'web-server', ready: true }));
});

test('routers are mounted, and an unknown path is 404 with a hint', async () => {
  const router = Router();
  router.get('/runs', (_request, response) => void response.send('runs'));
  const get = await start(new Health(), [router]);
  expect(await get('/runs')).toMatchObject({ status: 200, body: Buffer.from('runs') });
  const missing = await get('/nothing');
  expect(missing).toMatchObject({ status: 404 });
  expect(missing.body.toString()).toContain('GET /');
});

test('an error in a router is 500, is logged, and tells the client nothing of its cause', async () => {
  const router = Router();
  router.get('/broken', () => {
    throw new Error('secret cause');
  });
  const get = await start(new Health(), [router]);
  const answer = await get('/broken');
  expect(answer.status).toBe(500);
  expect(answer.body.toString()).not.toContain('secret');
  expect(logger.lines.at(-1)).toMatchObject({ level: 'error', message: 'request failed' });
});

test('a path that cannot be decoded is 400', async () => {
  const router = Router();
  router.get('/runs/:id', (_request, response) => void response.send('run'));
  const get = await start(new Health(), [router]);
  expect(await get('/runs/%E0%A4%A')).toMatchObject({ status: 400 });
});
