import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UnreadRequests } from '../../../src/exec/command-receiver.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { until } from '../../tool/until.js';

const PROTOBUF = { 'content-type': 'application/x-protobuf' };
const MIB = 1024 * 1024;

let clock: FakeClock;
let unread: UnreadRequests;
let taken: string[];
let others: string[];
let server: Server;
let url: string;
beforeEach(async () => {
  clock = new FakeClock();
  unread = new UnreadRequests(clock);
  taken = [];
  others = [];
  server = createServer((incoming, response) => {
    if (unread.receive(incoming, response)) return;
    void text(incoming).then((body) => {
      others.push(`${incoming.method} ${incoming.url} ${body.length}`);
      response.writeHead(400).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const take = async (signal: string, bytes: Uint8Array) => void taken.push(`${signal} ${Buffer.from(bytes)}`);
const post = (path: string, body: string | Buffer, headers: Record<string, string> = PROTOBUF) =>
  fetch(`${url}${path}`, { method: 'POST', headers, body });
const handedOver = (count: number) => until(`${count} requests`, () => taken.length === count);

describe("an engine's last spans", () => {
  const LAST = 'dbt process (x86_64-linux)';

  it('are answered when what is to be done before its end is done; others at once', async () => {
    let done = () => {};
    const begun: string[] = [];
    unread.endAfter((bytes) => {
      begun.push(String(Buffer.from(bytes)));
      return new Promise((resolve) => {
        done = resolve;
      });
    });
    expect((await post('/v1/traces', 'spans')).status).toBe(200);
    expect((await post('/v1/logs', LAST)).status).toBe(200);
    let isAnswered = false;
    const answer = post('/v1/traces', LAST).then(({ status }) => {
      isAnswered = true;
      return status;
    });
    await until('the work', () => begun.length > 0);
    expect([begun, isAnswered]).toEqual([[LAST], false]);
    done();
    expect(await answer).toBe(200);
  });

  it('are answered after five seconds, whatever there is to be done', async () => {
    let hasBegun = false;
    unread.endAfter(() => {
      hasBegun = true;
      return new Promise(() => {});
    });
    const answer = post('/v1/traces', LAST);
    await until('the work', () => hasBegun);
    clock.advance(5_000);
    expect((await answer).status).toBe(200);
  });
});

describe('a plain request in protobuf', () => {
  it('is answered although nothing takes it yet, and kept for the one that will', async () => {
    const answer = await post('/v1/traces', 'spans');
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
      200,
      PROTOBUF['content-type'],
      '',
    ]);
    expect(taken).toEqual([]);
    unread.handOverTo(take);
    await handedOver(1);
    expect(taken).toEqual(['traces spans']);
  });

  it('is handed over when it has been answered, one after the other in their order', async () => {
    const taking: (() => void)[] = [];
    unread.handOverTo(async (signal, bytes) => {
      await new Promise<void>((resolve) => taking.push(resolve));
      await take(signal, bytes);
    });
    for (const [path, body] of [
      ['/v1/logs', 'a'],
      ['/v1/traces', 'b'],
      ['/v1/logs', 'c'],
    ] as const) {
      expect((await post(path, body)).status).toBe(200);
    }
    for (let count = 1; count <= 3; count++) {
      await until('the next', () => taking.length === count);
      taking[count - 1]?.();
      await handedOver(count);
    }
    expect(taken).toEqual(['logs a', 'traces b', 'logs c']);
  });

  it('is handed over without waiting when no more will come', async () => {
    unread.handOverTo(take);
    await post('/v1/logs', 'a');
    await post('/v1/logs', 'b');
    await unread.settle();
    expect(taken).toEqual(['logs a', 'logs b']);
    expect(clock.nextTimerMs).toBeUndefined();
  });

  it('is tried again when it could not be taken, before those that came after it', async () => {
    let failures = 0;
    unread.handOverTo(async (signal, bytes) => {
      if (failures < 2) {
        failures += 1;
        throw new Error('the disk is full');
      }
      await take(signal, bytes);
    });
    await post('/v1/logs', 'a');
    await post('/v1/logs', 'b');
    await until('a failure', () => failures === 1);
    await expect(unread.settle()).rejects.toThrow('the disk is full');
    await until('another try', () => {
      clock.advance(1_000);
      return taken.length === 2;
    });
    expect([failures, taken]).toEqual([2, ['logs a', 'logs b']]);
  });

  it('is not kept when its sender goes away before all of it is there, and its room is free again', async () => {
    unread.handOverTo(take);
    const headers = { ...PROTOBUF, 'content-length': 12 * MIB };
    const sending = request(`${url}/v1/traces`, { method: 'POST', headers });
    const failed = new Promise((resolve) => sending.once('error', resolve));
    const arrived = new Promise((resolve) => server.once('request', (incoming) => incoming.once('data', resolve)));
    sending.write('spans');
    await arrived;
    const closed = new Promise((resolve) => server.once('connection', resolve));
    sending.destroy();
    await failed;
    expect((await post('/v1/logs', 'a')).status).toBe(200);
    await closed;
    await until('room', async () => (await post('/v1/logs', Buffer.alloc(12 * MIB))).status === 200);
    await unread.settle();
    expect(taken[0]).toBe('logs a');
    expect(taken.every((one) => one.startsWith('logs '))).toBe(true);
  });

  it('is left to others where 16 MiB are unread', async () => {
    await post('/v1/traces', Buffer.alloc(10 * MIB, 'a'));
    expect((await post('/v1/traces', Buffer.alloc(7 * MIB, 'b'))).status).toBe(400);
    expect(others).toEqual([`POST /v1/traces ${7 * MIB}`]);
    unread.handOverTo(take);
    await unread.settle();
    expect((await post('/v1/traces', Buffer.alloc(7 * MIB, 'c'))).status).toBe(200);
  });
});

describe('left to others, with its body', () => {
  it.each<[string, string, Record<string, string>]>([
    ['JSON', '/v1/logs', { 'content-type': 'application/json' }],
    ['no media type', '/v1/logs', { 'content-type': '' }],
    ['a compressed one', '/v1/logs', { ...PROTOBUF, 'content-encoding': 'gzip' }],
    ['metrics', '/v1/metrics', PROTOBUF],
    ['another path', '/', PROTOBUF],
    ['a path with more to it', '/v1/logs?x=1', PROTOBUF],
  ])('is %s', async (_name, path, headers) => {
    expect((await post(path, 'body', headers)).status).toBe(400);
    expect(others).toEqual([`POST ${path} 4`]);
  });

  it('is one that does not say how long it is', async () => {
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(Buffer.from('body'));
        controller.close();
      },
    });
    const init = { method: 'POST', headers: PROTOBUF, body, duplex: 'half' as const };
    expect((await fetch(`${url}/v1/logs`, init)).status).toBe(400);
    expect(others).toEqual(['POST /v1/logs 4']);
  });

  it('is another method', async () => {
    expect((await fetch(`${url}/v1/logs`, { method: 'PUT', headers: PROTOBUF, body: 'body' })).status).toBe(400);
    expect(others).toEqual(['PUT /v1/logs 4']);
  });
});
