import { afterEach, expect, test } from 'vitest';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n';

let bench: ReceiverBench;
afterEach(() => bench.stop());

test('a header that does not come to its end is 408', async () => {
  bench = await ReceiverBench.start({ headersTimeoutMs: 50 });
  const connection = await bench.connect();
  connection.write(HEADER);
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 408 Request Timeout/);
});

test('a connection on which nothing comes at all is closed', async () => {
  bench = await ReceiverBench.start({ headersTimeoutMs: 50 });
  const connection = await bench.connect();
  await connection.untilClosed();
});

test.each([
  ['plain', ''],
  ['gzip', 'Content-Encoding: gzip\r\n'],
])('a body in %s that does not come to its end is 408, and its memory is given back', async (_name, coding) => {
  const bytes = 64 * 1024;
  bench = await ReceiverBench.start({ requestTimeoutMs: 50, maxBodyBytes: bytes, maxInFlightBytes: bytes });
  const gone = bench.logger.next((line) => line.fields.reason === 'aborted');
  const connection = await bench.connect();
  connection.write(`${HEADER}${coding}Content-Length: ${bytes}\r\n\r\n`);
  connection.write(Buffer.from([0x1f]));
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 408 Request Timeout/);
  await gone;
  expect(await bench.postTraces(Buffer.alloc(0))).toMatchObject({ status: 200 });
});

test('what comes after a refusal is read no longer than a request may take', async () => {
  bench = await ReceiverBench.start({ requestTimeoutMs: 100, maxBodyBytes: 10 });
  const connection = await bench.connect();
  connection.write(`${HEADER}Content-Length: 1000\r\n\r\n`);
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 413 /);
});

test('a connection that is silent after its answer is closed', async () => {
  bench = await ReceiverBench.start({ keepAliveTimeoutMs: 50 });
  const connection = await bench.connect();
  connection.write(`${HEADER}Content-Length: 0\r\n\r\n`);
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 200 OK/);
});

test('a consumer that takes its time is no slow sender', async () => {
  bench = await ReceiverBench.start({ requestTimeoutMs: 50, keepAliveTimeoutMs: 50 });
  bench.consumer.hold();
  const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const received = bench.consumer.nextDelivery();
  const answer = bench.postJson(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }));
  await received;
  // Two other connections run into the time-out meanwhile.
  for (let i = 0; i < 2; i++) {
    const connection = await bench.connect();
    connection.write(HEADER);
    await connection.untilClosed();
  }
  bench.consumer.release();
  expect(await answer).toMatchObject({ status: 200 });
});
