import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import plain, { type RequestListener } from 'node:http';
import https from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { AddressRules, parseAllowed, WebhookHttp } from '../../../src/webhook/http.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { ConnectProxy } from '../../tool/connect-proxy.js';
import { until, WAIT_MS } from '../../tool/until.js';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const BODY = '{"event":1}';
const pem = (name: string) => readFileSync(new URL(`../../fixture/tls/${name}`, import.meta.url), 'utf8');
const clock = new FakeClock();
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A server of raw sockets. @param answer is called with each whole request and its number from 1 */
async function serve(
  answer: (socket: Socket, request: number) => void,
  given: {
    readonly newServer?: (listener: (socket: Socket) => void) => Server;
    readonly clock?: Clock;
    readonly timeoutMs?: number;
  } = {},
): Promise<{ readonly post: (signal?: AbortSignal) => ReturnType<WebhookHttp['post']>; readonly posts: () => number }> {
  const { newServer = createServer, timeoutMs = 10_000 } = given;
  let requestCount = 0;
  const sockets = new Set<Socket>();
  const server = newServer((socket) => {
    let text = '';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (!text.endsWith(BODY)) return;
      text = '';
      requestCount += 1;
      answer(socket, requestCount);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const isSecure = server instanceof https.Server;
  const { port } = server.address() as AddressInfo;
  const url = new URL(isSecure ? `https://localhost:${port}/` : `http://127.0.0.1:${port}/`);
  const rules = new AddressRules(parseAllowed('loopback') ?? []);
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const ca = isSecure ? { ca: pem('localhost.crt') } : {};
  const http = new WebhookHttp({ rules, timeoutMs, resolve, ...ca }, given.clock ?? clock);
  cleanups.push(() => {
    http.close();
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const never = new AbortController().signal;
  return { post: (signal = never) => http.post(url, {}, Buffer.from(BODY), signal), posts: () => requestCount };
}

/** The outcome; what does not settle fails the test with these words. */
async function settled<T>(outcome: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the attempt did not settle')), WAIT_MS);
  });
  return await Promise.race([outcome, late]).finally(() => clearTimeout(timer));
}

describe('an attempt settles', () => {
  it.each([
    [
      '101 with an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      101,
    ],
    [
      '101 and then bytes of another protocol',
      'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n\x01\x02',
      101,
    ],
    ['a head of which half is there', 'HTTP/1.1 200 OK\r\nContent-Le', null],
    ['what is no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', null],
    ['a head that is too long', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`, null],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', null],
    ['nothing', '', null],
  ])('with %s before the connection is closed', async (_what, bytes, status) => {
    const { post } = await serve((socket) => socket.end(bytes));
    const outcome = await settled(post());
    expect(outcome.status).toBe(status);
    expect(outcome.error === null).toBe(status !== null);
  });

  it('with 101 that the other side leaves open, whether or not it names a protocol', async () => {
    for (const head of ['Connection: Upgrade\r\nUpgrade: websocket\r\n', '']) {
      const { post } = await serve((socket) => socket.write(`HTTP/1.1 101 Switching Protocols\r\n${head}\r\n`));
      expect(await settled(post())).toMatchObject({ status: 101 });
    }
  });

  it('with a connection that is reset', async () => {
    const { post, posts } = await serve((socket) => socket.resetAndDestroy());
    expect(await settled(post())).toMatchObject({ status: null, error: expect.stringContaining('ECONNRESET') });
    expect(posts()).toBe(1);
  });

  it('with hints that are no answer, and the answer after them', async () => {
    const { post } = await serve((socket) => socket.end(`HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n${OK}`));
    expect(await settled(post())).toMatchObject({ status: 200, body: 'ok' });
  });

  it('when it is cut off', async () => {
    const stop = new AbortController();
    const { post } = await serve(() => stop.abort());
    expect(await settled(post(stop.signal))).toMatchObject({ status: null, error: expect.any(String) });
  });
});

describe('an answer in time', () => {
  it.each([200, 503])('counts by its status (%i), also where its body stays away', async (status) => {
    const head = `HTTP/1.1 ${status} X\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n`;
    // Only the one who asks knows when the head has come, so the time is the machine's.
    const { post } = await serve((socket) => socket.write(`${head}half`), { clock: systemClock, timeoutMs: 800 });
    const headers = { 'retry-after': '7' };
    expect(await settled(post())).toMatchObject({ status, error: null, headers, body: 'half' });
  });

  it.each([
    ['closed', (socket: Socket) => socket.end()],
    ['reset', (socket: Socket) => socket.resetAndDestroy()],
  ])('counts by its status where its connection is %s within the body', async (_how, end) => {
    const { post, posts } = await serve((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', () => setImmediate(() => end(socket))),
    );
    expect(await settled(post())).toMatchObject({ status: 200, error: null });
    expect(posts()).toBe(1);
  });
});

describe('a kept connection', () => {
  const tls = (listener: (socket: Socket) => void) =>
    https
      .createServer({ key: pem('localhost.key'), cert: pem('localhost.crt') })
      .removeAllListeners('secureConnection')
      .on('secureConnection', listener);

  it.each([
    ['plain', createServer, (socket: Socket) => socket.resetAndDestroy()],
    ['plain, closed', createServer, (socket: Socket) => socket.end()],
    ['TLS', tls, (socket: Socket) => socket.destroy()],
    ['TLS, closed', tls, (socket: Socket) => socket.end()],
  ] as const)(
    '(%s) that ends before a byte of the answer is replaced once, within the attempt that says so',
    async (_how, newServer, end) => {
      const { post, posts } = await serve(
        (socket, request) => {
          if (request === 2) end(socket);
          else socket.write(OK);
        },
        { newServer },
      );
      expect(await settled(post())).toMatchObject({ status: 200, resentAfter: null });
      expect(await settled(post())).toMatchObject({
        status: 200,
        resentAfter: expect.stringMatching(/ECONNRESET|socket hang up/),
      });
      expect(posts()).toBe(3);
    },
  );

  it('is not replaced twice: what the new one says is what became of the attempt', async () => {
    const { post, posts } = await serve((socket, request) => {
      if (request === 1) socket.write(OK);
      else socket.resetAndDestroy();
    });
    await settled(post());
    expect(await settled(post())).toMatchObject({ status: null, resentAfter: expect.any(String) });
    expect(posts()).toBe(3);
  });

  it('that ends within the head of the answer is not replaced: the request was looked at', async () => {
    const { post, posts } = await serve((socket, request) => {
      if (request === 1) socket.write(OK);
      else socket.write('HTTP/1.1 2', () => setImmediate(() => socket.resetAndDestroy()));
    });
    await settled(post());
    expect(await settled(post())).toMatchObject({ status: null, resentAfter: null });
    expect(posts()).toBe(2);
  });

  it('and the new one share the time of one attempt', async () => {
    const { post, posts } = await serve((socket, request) => {
      if (request === 1) socket.write(OK);
      if (request !== 2) return;
      clock.advance(9_000);
      socket.resetAndDestroy();
    });
    await settled(post());
    const second = post();
    await until('the third request', () => posts() === 3);
    clock.advance(1_001);
    expect(await settled(second)).toMatchObject({ status: null, error: 'no answer within 10 s' });
  });
});

describe('a post through a proxy', () => {
  let proxy: ConnectProxy;
  const never = new AbortController().signal;
  beforeEach(async () => {
    proxy = await ConnectProxy.open('me:sesame');
  });
  afterEach(() => proxy.close());

  /** A real endpoint, and what posts to it through the proxy. */
  async function endpoint(isSecure: boolean, given: { readonly allow?: string; readonly addresses?: string[] } = {}) {
    const hosts: (string | undefined)[] = [];
    const listener: RequestListener = (request, response) => {
      hosts.push(request.headers.host);
      response.end('ok');
    };
    const secrets = { cert: pem('localhost.crt'), key: pem('localhost.key') };
    const server = isSecure ? https.createServer(secrets, listener) : plain.createServer(listener);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { allow = 'loopback', addresses = ['127.0.0.1'] } = given;
    const http = new WebhookHttp(
      {
        rules: new AddressRules(parseAllowed(allow) ?? []),
        timeoutMs: 10_000,
        // The name leads nowhere but here.
        resolve: async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        proxy: new URL(proxy.url),
        ca: pem('localhost.crt'),
      },
      clock,
    );
    cleanups.push(() => {
      http.close();
      server.closeAllConnections();
      server.close();
    });
    const name = isSecure ? 'localhost' : 'hooks.example.com';
    const url = new URL(`${isSecure ? 'https' : 'http'}://${name}:${port}/a`);
    return { port, hosts, name, post: (to = url) => http.post(to, {}, Buffer.from(BODY), never) };
  }

  it.each([false, true])(
    'asks it for the address that was checked, and the endpoint sees its name (TLS: %s)',
    async (isSecure) => {
      const { post, port, hosts, name } = await endpoint(isSecure);
      expect(await post()).toMatchObject({ status: 200, body: 'ok', error: null });
      expect(await post()).toMatchObject({ status: 200, body: 'ok', error: null });
      expect(proxy.asked).toEqual([`127.0.0.1:${port}`, `127.0.0.1:${port}`]);
      expect(hosts).toEqual([`${name}:${port}`, `${name}:${port}`]);
    },
  );

  it('never asks it for an address that is not allowed, written or resolved', async () => {
    const { post, port } = await endpoint(false, { allow: '10.9.9.9' });
    expect((await post()).error).toContain('127.0.0.1 is loopback');
    expect((await post(new URL(`http://127.0.0.1:${port}/`))).error).toContain('127.0.0.1 is loopback');
    expect((await post(new URL(`http://[::1]:${port}/`))).error).toContain('::1 is loopback');
    expect(proxy.asked).toEqual([]);
  });

  it('tries the next address that is allowed where the proxy cannot connect to the first', async () => {
    const { post, port } = await endpoint(false, { addresses: ['10.0.0.1', '127.0.0.9', '127.0.0.1'] });
    proxy.refused = '127.0.0.9';
    expect(await post()).toMatchObject({ status: 200 });
    expect(proxy.asked).toEqual([`127.0.0.9:${port}`, `127.0.0.1:${port}`]);
  });

  it('says what the proxy answered, and where it cannot be reached', async () => {
    const { post, port } = await endpoint(true);
    proxy.refused = '127.0.0.1';
    expect(await post()).toMatchObject({
      ...{ status: null, error: `the proxy answered 403 when it was asked to connect to 127.0.0.1:${port}` },
    });
    await proxy.close();
    expect((await post()).error).toMatch(/^the proxy 127\.0\.0\.1:\d+ cannot be reached: connect ECONNREFUSED/);
  });

  it('is over when the proxy does not answer', async () => {
    const { post } = await endpoint(true);
    proxy.isSilent = true;
    const posted = post();
    await until('the request', () => proxy.asked.length === 1);
    clock.advance(10_000);
    expect(await posted).toMatchObject({ status: null, error: 'no answer within 10 s' });
  });
});
