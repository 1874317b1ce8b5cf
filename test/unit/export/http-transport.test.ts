import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpTransport, type HttpTransportOptions } from '../../../src/export/otlp-destination.js';
import { FakeClock } from '../../fake/fake-clock.js';

const clock = new FakeClock();
const never = new AbortController().signal;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

type Handler = (request: http.IncomingMessage, response: http.ServerResponse, body: Buffer) => void;

async function serve(handler: Handler): Promise<URL> {
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => handler(request, response, Buffer.concat(chunks)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return new URL(`http://127.0.0.1:${port}/v1/traces`);
}

function transportTo(url: URL, changes: Partial<HttpTransportOptions> = {}): HttpTransport {
  const transport = new HttpTransport(
    {
      url,
      headers: { 'content-type': 'application/x-protobuf', 'x-tenant': 'a' },
      timeoutMs: 10_000,
      compression: 'none',
      readAccepted: () => ({ rejectedCount: 0, message: '' }),
      readError: (body) => Buffer.from(body).toString(),
      ...changes,
    },
    clock,
  );
  cleanups.push(() => transport.close());
  return transport;
}

describe('the HTTP transport', () => {
  it('posts body and headers over one kept connection', async () => {
    const seen: { body: string; tenant: unknown; length: unknown; port: unknown }[] = [];
    const url = await serve((request, response, body) => {
      const { 'x-tenant': tenant, 'content-length': length } = request.headers;
      seen.push({ body: body.toString(), tenant, length, port: request.socket.remotePort });
      response.end();
    });
    const transport = transportTo(url);
    for (const text of ['one', 'three']) {
      expect(await transport.send(Buffer.from(text), never)).toEqual({
        kind: 'accepted',
        status: 200,
        rejectedCount: 0,
        message: '',
      });
    }
    expect(seen).toEqual([
      { body: 'one', tenant: 'a', length: '3', port: seen[0]?.port },
      { body: 'three', tenant: 'a', length: '5', port: seen[0]?.port },
    ]);
  });

  it('releases a body when nothing reads it any more, and not before it was sent whole', async () => {
    const body = Buffer.alloc(16 * 1024 * 1024);
    let releaseCount = 0;
    const releaseBody = () => {
      releaseCount += 1;
    };
    const reading = await serve((_request, response) => response.end());
    const taken = transportTo(reading).send(body, never, releaseBody);
    expect(releaseCount).toBe(0);
    expect(await taken).toMatchObject({ kind: 'accepted' });
    expect(releaseCount).toBe(1);

    // Answers as soon as the request begins, and reads nothing of it.
    const hasty = createServer((socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
    });
    hasty.listen(0, '127.0.0.1');
    await once(hasty, 'listening');
    cleanups.push(() => hasty.close());
    const { port } = hasty.address() as AddressInfo;
    const url = new URL(`http://127.0.0.1:${port}/v1/traces`);
    expect(await transportTo(url).send(body, never, releaseBody)).toMatchObject({ kind: 'accepted' });
    expect(releaseCount).toBe(1);
    expect(await transportTo(url, { compression: 'gzip' }).send(body, never, releaseBody)).toMatchObject({
      kind: 'accepted',
    });
    expect(releaseCount).toBe(2);
  });

  it('compresses with gzip when asked to', async () => {
    let received = '';
    const url = await serve((request, response, body) => {
      received = `${request.headers['content-encoding']} ${gunzipSync(body)}`;
      response.end();
    });
    await transportTo(url, { compression: 'gzip' }).send(Buffer.from('text'), never);
    expect(received).toBe('gzip text');
  });

  it('tells what the receiver rejected of an accepted body', async () => {
    const url = await serve((_request, response) => response.end('7 too old'));
    const readAccepted = (body: Uint8Array) => ({ rejectedCount: 7, message: Buffer.from(body).toString() });
    const result = await transportTo(url, { readAccepted }).send(Buffer.from(''), never);
    expect(result).toEqual({ kind: 'accepted', status: 200, rejectedCount: 7, message: '7 too old' });
  });

  it('masks credentials that a receiver repeats', async () => {
    const url = await serve((request, response) => {
      const { authorization, tenant } = request.headers;
      response.writeHead(401).end(`${authorization} may not write for ${tenant} (${request.url})`);
    });
    url.search = '?key=open-sesame-too';
    const headers = { authorization: 'Bearer open-sesame', tenant: 'a' };
    const result = await transportTo(url, { headers }).send(Buffer.from(''), never);
    expect(result).toEqual({ kind: 'refused', status: 401, message: '**** may not write for a (/v1/traces****)' });
  });

  it('takes a body that it cannot read in a 2xx answer for a plain yes', async () => {
    const url = await serve((_request, response) => response.writeHead(202).end('<html>'));
    const readAccepted = () => {
      throw new Error('no protobuf');
    };
    const result = await transportTo(url, { readAccepted }).send(Buffer.from(''), never);
    expect(result).toEqual({ kind: 'accepted', status: 202, rejectedCount: 0, message: '' });
  });

  it.each([408, 429, 500, 502, 503, 504, 507])('calls status %i retryable', async (status) => {
    const url = await serve((_request, response) => response.writeHead(status, { 'retry-after': '7' }).end('busy'));
    const result = await transportTo(url).send(Buffer.from(''), never);
    expect(result).toEqual({ kind: 'retryable', status, retryAfterMs: 7_000, message: 'busy' });
  });

  it.each([301, 302, 307, 308, 400, 401, 403, 404, 413, 415])('calls status %i refused', async (status) => {
    let count = 0;
    const url = await serve((_request, response) => {
      count += 1;
      response.writeHead(status, { location: '/elsewhere' }).end('no');
    });
    expect(await transportTo(url).send(Buffer.from(''), never)).toEqual({ kind: 'refused', status, message: 'no' });
    expect(count).toBe(1);
  });

  it('calls a refused connection retryable', async () => {
    const server = http.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const result = await transportTo(new URL(`http://127.0.0.1:${port}/`)).send(Buffer.from(''), never);
    expect(result).toMatchObject({ kind: 'retryable', status: null, retryAfterMs: null });
    expect(result.message).toContain('ECONNREFUSED');
  });

  it('calls a connection that breaks off inside the answer retryable', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    expect(await transportTo(url).send(Buffer.from(''), never)).toMatchObject({ kind: 'retryable', status: null });
  });

  it.each([
    ['101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', 101],
    ['a connection that is closed', '', null],
  ])('calls %s instead of an answer retryable, and comes back', async (_what, bytes, status) => {
    const server = createServer((socket) => socket.once('data', () => socket.end(bytes))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanups.push(() => server.close());
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(await transportTo(url).send(Buffer.from(''), never)).toMatchObject({ kind: 'retryable', status });
  });

  it('gives up when there is no answer in time', async () => {
    const url = await serve(() => clock.advance(5_000));
    const result = await transportTo(url, { timeoutMs: 5_000 }).send(Buffer.from(''), never);
    expect(result).toMatchObject({ kind: 'retryable', status: null, message: 'no answer within 5000 ms' });
  });

  it('gives up when the body of the answer stays away', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200);
      response.write('half', () => setImmediate(() => clock.advance(5_000)));
    });
    const result = await transportTo(url, { timeoutMs: 5_000 }).send(Buffer.from(''), never);
    expect(result).toMatchObject({ kind: 'retryable', status: null });
  });

  it('gives up when it is told to', async () => {
    const stop = new AbortController();
    const url = await serve(() => stop.abort());
    const transport = transportTo(url);
    expect(await transport.send(Buffer.from(''), stop.signal)).toMatchObject({ kind: 'retryable', status: null });
    expect(await transport.send(Buffer.from(''), stop.signal)).toMatchObject({ kind: 'retryable', status: null });
  });

  it('reads no more than 64 KiB of an answer', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(400);
      const pour = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384))) {}
        if (!response.destroyed) response.once('drain', pour);
      };
      pour();
    });
    expect(await transportTo(url).send(Buffer.from(''), never)).toEqual({ kind: 'refused', status: 400, message: '' });
  });

  it('cuts long messages', async () => {
    const url = await serve((_request, response) => response.writeHead(400).end('x'.repeat(5_000)));
    const result = await transportTo(url).send(Buffer.from(''), never);
    expect(result.message).toHaveLength(300);
  });

  it('does not trust a certificate that nobody vouches for', async () => {
    const https = await import('node:https');
    const { readFileSync } = await import('node:fs');
    const pem = (name: string) => readFileSync(new URL(`../../fixture/tls/${name}`, import.meta.url), 'utf8');
    const server = https.createServer({ key: pem('localhost.key'), cert: pem('localhost.crt') }, (_request, response) =>
      response.end(),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = new URL(`https://localhost:${(server.address() as AddressInfo).port}/`);
    expect(await transportTo(url).send(Buffer.from(''), never)).toMatchObject({ kind: 'retryable', status: null });
    const trusting = transportTo(url, { tls: { ca: pem('localhost.crt') } });
    expect(await trusting.send(Buffer.from(''), never)).toMatchObject({ kind: 'accepted' });
  });
});
