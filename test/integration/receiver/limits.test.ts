import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { paddedBody } from '../../fake/padded-body.js';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const MIB = 1024 * 1024;
const GZIP = { 'Content-Encoding': 'gzip' };
const DEFLATE = { 'Content-Encoding': 'deflate' };
const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', name: 'a' };
const ONE_SPAN = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [SPAN] }] }] });
const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n';

let bench: ReceiverBench;
afterEach(() => bench.stop());

test('a body of exactly 64 MiB is taken and one of a byte more is not, announced, chunked or compressed', async () => {
  bench = await ReceiverBench.start();
  const largest = paddedBody(64 * MIB);
  const larger = paddedBody(64 * MIB + 1);
  expect(await bench.postTraces(largest)).toMatchObject({ status: 200 });
  expect(await bench.postTraces(larger)).toMatchObject({ status: 413 });
  expect(await bench.postTraces([largest])).toMatchObject({ status: 200 });
  expect(await bench.postTraces([larger])).toMatchObject({ status: 413 });
  expect(await bench.postTraces(gzipSync(largest), GZIP)).toMatchObject({ status: 200 });
  expect(await bench.postTraces(gzipSync(larger), GZIP)).toMatchObject({ status: 413 });
});

test('the limit holds for every coding', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: 1_000 });
  for (const [size, status] of [
    [1_000, 200],
    [1_001, 413],
  ] as const) {
    const body = paddedBody(size);
    expect(await bench.postTraces(body)).toMatchObject({ status });
    expect(await bench.postTraces([body])).toMatchObject({ status });
    expect(await bench.postTraces(gzipSync(body), GZIP)).toMatchObject({ status });
    expect(await bench.postTraces(deflateSync(body), DEFLATE)).toMatchObject({ status });
    expect(await bench.postTraces(deflateRawSync(body), DEFLATE)).toMatchObject({ status });
  }
});

test('a body that announces too much is refused before it is read', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: 1_000 });
  const connection = await bench.connect();
  connection.write(`${HEADER}Content-Length: 1001\r\n\r\n`);
  expect(await connection.received(/send smaller batches/)).toMatch(/^HTTP\/1.1 413 /);
  connection.destroy();
});

test('members that inflate to nothing are counted as they come', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: 1_000 });
  const nothing = gzipSync(Buffer.alloc(0));
  const many = Buffer.concat(Array.from({ length: 51 }, () => nothing));
  expect(await bench.postTraces(many.subarray(0, 40 * nothing.length), GZIP)).toMatchObject({ status: 200 });
  expect(await bench.postTraces(many, GZIP)).toMatchObject({ status: 413 });
});

test('a body that the memory for all of them has no room for is 503 before it is read, and welcome later', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: MIB, maxInFlightBytes: MIB });
  const first = await bench.connect();
  first.write(`${HEADER}Content-Length: ${MIB}\r\nExpect: 100-continue\r\n\r\n`);
  await first.received(/100 Continue/);
  const second = await bench.connect();
  second.write(`${HEADER}Content-Length: 10\r\n\r\n`);
  expect(await second.received(/again later/)).toMatch(/^HTTP\/1.1 503 .*Retry-After: 1\r\n/s);
  second.destroy();

  first.write(paddedBody(MIB));
  await first.received(/HTTP\/1.1 200 OK/);
  first.destroy();
  expect(await bench.postTraces(paddedBody(10))).toMatchObject({ status: 200 });
});

test('a body that grows beyond that memory while it is read is 503', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: MIB, maxInFlightBytes: MIB });
  const first = await bench.connect();
  first.write(`${HEADER}Content-Length: ${MIB / 2}\r\nExpect: 100-continue\r\n\r\n`);
  await first.received(/100 Continue/);
  expect(await bench.postTraces([paddedBody(MIB)])).toMatchObject({ status: 503 });
  expect(await bench.postTraces(gzipSync(paddedBody(MIB)), GZIP)).toMatchObject({ status: 503 });
  expect(await bench.postTraces(gzipSync(paddedBody(MIB / 4)), GZIP)).toMatchObject({ status: 200 });
  first.destroy();
});

test('a body counts until it is answered', async () => {
  bench = await ReceiverBench.start({ maxBodyBytes: 16 * 1024, maxInFlightBytes: 16 * 1024 });
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const waiting = bench.postJson(ONE_SPAN);
  await received;
  expect(await bench.postJson(ONE_SPAN)).toMatchObject({ status: 503 });
  bench.consumer.release();
  expect(await waiting).toMatchObject({ status: 200 });
  expect(await bench.postJson(ONE_SPAN)).toMatchObject({ status: 200 });
});

test.each([
  ['plain', {}, Buffer.alloc(100)],
  ['gzip', GZIP, gzipSync(Buffer.alloc(100_000)).subarray(0, 100)],
])('an upload in %s that is broken off gives its memory back', async (_name, headers, half) => {
  bench = await ReceiverBench.start({ maxBodyBytes: MIB, maxInFlightBytes: MIB });
  const gone = bench.logger.next((line) => line.fields.reason === 'aborted');
  const connection = await bench.connect();
  const lines = Object.entries({ ...headers, 'Content-Length': MIB, Expect: '100-continue' });
  connection.write(`${HEADER}${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  await connection.received(/100 Continue/);
  connection.write(half);
  connection.destroy();
  await gone;
  expect(await bench.postTraces(paddedBody(MIB))).toMatchObject({ status: 200 });
});

test('a sender that leaves while its records are being kept does no harm', async () => {
  bench = await ReceiverBench.start();
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const connection = await bench.connect();
  const header = HEADER.replace('x-protobuf', 'json');
  connection.write(`${header}Content-Length: ${ONE_SPAN.length}\r\n\r\n${ONE_SPAN}`);
  await received;
  connection.destroy();
  bench.consumer.release();
  expect(await bench.postJson(ONE_SPAN)).toMatchObject({ status: 200 });
  expect(bench.consumer.deliveries).toHaveLength(2);
});

test('connections beyond the limit are closed at once', async () => {
  bench = await ReceiverBench.start({ maxConnections: 1 });
  const first = await bench.connect();
  const second = await bench.connect();
  expect(await second.untilClosed()).toBe('');
  first.write(`${HEADER}Content-Length: 0\r\n\r\n`);
  await first.received(/HTTP\/1.1 200 OK/);
  expect(bench.health.report().checks[0]?.state.details).toMatchObject({ droppedConnectionCount: 1 });
  expect(bench.logger.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ maxConnections: 1 }) }),
  );
});
