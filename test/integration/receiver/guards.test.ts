import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import type { Guard, Shortage } from '../../../src/core/guard.js';
import { paddedBody } from '../../fake/padded-body.js';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
const SHORTAGE = {
  message: 'The disk is full: free some space; --disk-reserve sets the reserve.',
  retryAfterMs: 4_001,
};

/** Refuses while it has a shortage; keeps what it was asked and notified of. */
class FakeGuard implements Guard {
  shortage: Shortage | undefined;
  readonly asked: number[] = [];
  readonly notified: number[] = [];

  findShortage(bodyBytes: number): Shortage | undefined {
    this.asked.push(bodyBytes);
    return this.shortage;
  }

  onBody(bodyBytes: number): void {
    this.notified.push(bodyBytes);
  }
}

let bench: ReceiverBench;
afterEach(() => bench.stop());

test('a guard that sees no room makes it 503 with its sentence and when to come back, and 200 as soon as there is', async () => {
  const guard = new FakeGuard();
  bench = await ReceiverBench.start({}, [guard]);
  guard.shortage = SHORTAGE;
  const answer = await bench.postJson('{}');
  expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
  expect(JSON.parse(answer.body.toString())).toEqual({ code: 14, message: SHORTAGE.message });
  guard.shortage = undefined;
  expect(await bench.postJson('{}')).toMatchObject({ status: 200 });
});

test('the answer comes before the body is read, and the connection serves on', async () => {
  const guard = new FakeGuard();
  bench = await ReceiverBench.start({}, [guard]);
  guard.shortage = SHORTAGE;
  const connection = await bench.connect();
  connection.write(`${HEADER}Content-Length: 10\r\n\r\n{`);
  await connection.received(/HTTP\/1.1 503 .*free some space/s);
  guard.shortage = undefined;
  connection.write(`         ${HEADER}Content-Length: 2\r\n\r\n{}`);
  await connection.received(/HTTP\/1.1 200 OK/);
  connection.destroy();
});

test('health is answered and other connections stay open meanwhile', async () => {
  const guard = new FakeGuard();
  bench = await ReceiverBench.start({}, [guard]);
  const idle = await bench.connect();
  guard.shortage = SHORTAGE;
  expect(await bench.postJson('{}')).toMatchObject({ status: 503 });
  expect(await bench.send({ path: '/healthz', method: 'GET' })).toMatchObject({ status: 200 });
  guard.shortage = undefined;
  idle.write(`${HEADER}Content-Length: 2\r\n\r\n{}`);
  await idle.received(/HTTP\/1.1 200 OK/);
  idle.destroy();
});

test('guards are asked with the announced length, and notified of the one after inflating', async () => {
  const guard = new FakeGuard();
  bench = await ReceiverBench.start({}, [guard]);
  const packed = gzipSync(paddedBody(50_000));
  await bench.postTraces(packed, { 'Content-Encoding': 'gzip' });
  await bench.postTraces([paddedBody(100)]);
  expect(guard.asked).toEqual([packed.length, 0]);
  expect(guard.notified).toEqual([50_000, 100]);
});

test('one guard of several is enough to refuse, and a body that is refused is no body', async () => {
  const guards = [new FakeGuard(), new FakeGuard()] as const;
  bench = await ReceiverBench.start({}, guards);
  guards[1].shortage = SHORTAGE;
  expect(await bench.postJson('{}')).toMatchObject({ status: 503 });
  expect(guards.flatMap((guard) => guard.notified)).toEqual([]);
  expect(bench.consumer.deliveries).toEqual([]);
});
