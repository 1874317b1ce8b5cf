import { Agent, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { HttpListener, type HttpListenerConfig, letTakeItsTime } from '../../../src/core/http-listener.js';
import { silentLogger } from '../../../src/core/logger.js';
import { RawConnection, send } from '../../fake/http-client.js';

const NEVER = new AbortController().signal;

let listener: HttpListener | undefined;
afterEach(() => listener?.shutdown(AbortSignal.abort()));

async function start(handler: RequestListener, config: Partial<HttpListenerConfig> = {}): Promise<HttpListener> {
  listener = new HttpListener({ host: '127.0.0.1', port: 0, option: '--http', ...config }, handler, silentLogger);
  await listener.start();
  return listener;
}

test('port 0 picks a port, and the address says which', async () => {
  const { address } = await start((_request, response) => response.end('here'));
  expect(address.url).toBe(`http://127.0.0.1:${address.port}`);
  expect(await send(address.port, { path: '/' })).toMatchObject({ status: 200, body: Buffer.from('here') });
});

test('an IPv6 address is written in brackets', async () => {
  const { address } = await start((_request, response) => response.end(), { host: '::1' });
  expect(address.url).toBe(`http://[::1]:${address.port}`);
});

test('before the start there is no address', () => {
  const early = new HttpListener({ host: '127.0.0.1', port: 0, option: '--http' }, () => {}, silentLogger);
  expect(() => early.address).toThrow('not listening yet');
  expect(early.isOpen).toBe(false);
});

test('a large answer that is still on its way when the end begins arrives whole', async () => {
  const size = 20_000_000;
  const server = await start((request, response) => {
    request.resume();
    request.on('close', () => {
      response.end(Buffer.alloc(size));
      ended();
    });
  });
  let ended: () => void = () => {};
  const answered = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const socket = connect(server.address.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
  await answered;
  const down = server.shutdown(NEVER);
  let count = 0;
  socket.on('data', (chunk) => {
    count += chunk.length;
  });
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  expect(count).toBeGreaterThan(size);
  await down;
});

test('an answer that began before the end is finished, and its connection then closed', async () => {
  let finish: () => void = () => {};
  let began: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    began = resolve;
  });
  const server = await start((_request, response) => {
    response.write('first ');
    finish = () => response.end('second');
    began();
  });
  const answer = send(server.address.port, { path: '/', agent: new Agent({ keepAlive: true }) });
  await begun;
  const down = server.shutdown(NEVER);
  finish();
  expect(await answer).toMatchObject({ status: 200, body: Buffer.from('first second') });
  await down;
});

test('a request that comes on a kept connection just after the end began is answered, and told that it was the last', async () => {
  const server = await start((_request, response) => response.end('here'));
  const connection = await RawConnection.open(server.address.port);
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await connection.received(/keep-alive.*here/s);
  const down = server.shutdown(NEVER);
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await connection.untilClosed()).toMatch(/Connection: close.*here$/s);
  await down;
});

test('a sender that is too slow does not hold up the end', async () => {
  const { address } = await start((request) => void request.resume(), { requestTimeoutMs: 100 });
  const socket = connect(address.port, '127.0.0.1');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const began = new Promise((resolve) => socket.on('data', resolve));
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n');
  await began;
  await listener?.shutdown(NEVER);
  await closed;
});

test('a body whose reader looks after its sender may take longer than others', async () => {
  const hurry: (() => void)[] = [];
  const server = await start(
    (request, response) => {
      if (request.url === '/upload') hurry.push(letTakeItsTime(request));
      request.resume().on('end', () => response.end('all of it'));
    },
    { requestTimeoutMs: 50 },
  );
  const { port } = server.address;
  const begin = async (path: string) => {
    const connection = await RawConnection.open(port);
    connection.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nx`);
    return connection;
  };
  const uploads = [await begin('/upload'), await begin('/upload')];
  // The first is cut off, and so time has passed for the others.
  for (let times = 0; times < 3; times += 1) {
    expect(await (await begin('/other')).untilClosed()).toMatch(/^HTTP\/1.1 408 /);
  }
  uploads[0]?.write('y');
  expect(await uploads[0]?.untilClosed()).toMatch(/all of it/);
  hurry[1]?.();
  expect(await uploads[1]?.untilClosed()).toMatch(/^HTTP\/1.1 408 /);
});
