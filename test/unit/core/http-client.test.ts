import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exchange, openExchange, type StreamedBody } from '../../../src/core/http-client.js';

const never = new AbortController().signal;
let server: Server;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let url: URL;
beforeEach(async () => {
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/place`);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** A body in pieces of 64 KiB. */
function streamed(pieceCount: number, sizeBytes = pieceCount * 65_536): StreamedBody & { sentCount: number } {
  const body = { sizeBytes, sentCount: 0 };
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (; body.sentCount < pieceCount; body.sentCount += 1) yield new Uint8Array(65_536);
  }
  return Object.assign(body, { content: pieces() });
}

function put(body: StreamedBody) {
  return exchange({ method: 'PUT', url, headers: {}, body }, { signal: never, maxBodyBytes: 100 });
}

describe('an exchange', () => {
  it('sends a body while it is read, with its length', async () => {
    answer = async (request, response) => {
      let length = 0;
      for await (const chunk of request) length += chunk.length;
      response.end(`${request.headers['content-length']} ${length}`);
    };
    expect(Buffer.from((await put(streamed(40))).body).toString()).toBe(`${40 * 65_536} ${40 * 65_536}`);
  });

  it('fails where the body turns out shorter than announced', async () => {
    answer = (request) => request.resume();
    await expect(put(streamed(1, 100_000))).rejects.toThrow('65536 bytes were to be sent as 100000');
  });

  it('stops reading a body that the other side has answered without', async () => {
    answer = (_request, response) => response.writeHead(413).end('too large');
    const body = streamed(1_000);
    expect((await put(body)).status).toBe(413);
    expect(body.sentCount).toBeLessThan(1_000);
  });

  it('gives a response as it arrives, until it is stopped', async () => {
    answer = (_request, response) => response.write('first');
    const stop = new AbortController();
    const { status, body } = await openExchange({ method: 'GET', url, headers: {} }, stop.signal);
    expect(status).toBe(200);
    const chunks = body[Symbol.asyncIterator]();
    expect(String((await chunks.next()).value)).toBe('first');
    stop.abort();
    await expect(chunks.next()).rejects.toThrow();
  });
});
