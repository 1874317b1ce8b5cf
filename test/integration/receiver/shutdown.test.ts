import { Agent } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', name: 'a' };
const ONE_SPAN = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [SPAN] }] }] });
const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
const NEVER = new AbortController().signal;

let bench: ReceiverBench;
beforeEach(async () => {
  bench = await ReceiverBench.start();
});
afterEach(() => bench.stop());

test('a request in flight is answered, and nothing new is taken meanwhile', async () => {
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const agent = new Agent({ keepAlive: true });
  const headers = { 'Content-Type': 'application/json' };
  const answer = bench.send({ path: '/v1/traces', headers, body: Buffer.from(ONE_SPAN), agent });
  await received;
  const port = bench.port;
  const down = bench.receiver.shutdown(NEVER);
  await expect(bench.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED', port });
  expect(bench.health.report()).toMatchObject({ ready: false });
  bench.consumer.release();
  expect(await answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
  await down;
  agent.destroy();
});

test('a body that is still coming is waited for', async () => {
  const connection = await bench.connect();
  connection.write(`${HEADER}Content-Length: ${ONE_SPAN.length}\r\nExpect: 100-continue\r\n\r\n`);
  await connection.received(/100 Continue/);
  const down = bench.receiver.shutdown(NEVER);
  connection.write(ONE_SPAN);
  expect(await connection.untilClosed()).toMatch(/HTTP\/1.1 200 OK/);
  await down;
  expect(bench.consumer.deliveries).toHaveLength(1);
});

test('idle connections do not hold it up, whether they were ever used or not', async () => {
  const used = await bench.connect();
  used.write(`${HEADER}Content-Length: ${ONE_SPAN.length}\r\n\r\n${ONE_SPAN}`);
  await used.received(/HTTP\/1.1 200 OK/);
  const unused = await bench.connect();
  const halfHeader = await bench.connect();
  halfHeader.write(HEADER);
  await bench.receiver.shutdown(NEVER);
  await Promise.all([used.untilClosed(), unused.untilClosed(), halfHeader.untilClosed()]);
});

test('what is not done at the deadline is cut off', async () => {
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const answer = bench.postJson(ONE_SPAN).catch((error: unknown) => error);
  await received;
  const deadline = new AbortController();
  const down = bench.receiver.shutdown(deadline.signal);
  deadline.abort();
  await down;
  expect(await answer).toMatchObject({ code: 'ECONNRESET' });
  bench.consumer.release();
});

test('a second shutdown, and one before the start, do nothing', async () => {
  await bench.receiver.shutdown(NEVER);
  await bench.receiver.shutdown(NEVER);
  expect(() => bench.receiver.address.port).not.toThrow();
});
