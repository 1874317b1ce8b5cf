import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GrpcBench } from '../../../fake/grpc-bench.js';
import { endlessHeader, frame, GrpcClient, TRACES_PATH } from '../../../fake/grpc-client.js';
import { paddedBody } from '../../../fake/padded-body.js';
import { until } from '../../../tool/until.js';

const GZIP = { 'grpc-encoding': 'gzip' };
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

let bench: GrpcBench;
beforeEach(async () => {
  bench = await GrpcBench.start();
});
afterEach(async () => {
  await until('its memory', () => bench.intake.inFlightBytes === 0);
  expect(await bench.client().call(frame(paddedBody(100)))).toMatchObject({ code: 0 });
  expect(bench.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  await bench.stop();
});

test.each([
  ['nothing at all', Buffer.alloc(0), {}, /ended before it/],
  ['half a prefix', Buffer.alloc(3), {}, /ended before it/],
  ['a prefix alone', frame(Buffer.alloc(0), 0, 10), {}, /10 bytes, 0 came/],
  ['a message that is cut off', frame(Buffer.alloc(10), 0, 4_000_000), {}, /4000000 bytes, 10 came/],
  ['a message that is longer than it says', frame(Buffer.alloc(10), 0, 9), {}, /9 bytes, more came/],
  ['no message of gRPC', Buffer.from('{"resourceSpans":[]}'), {}, /not a gRPC message/],
  ['bytes that are not compressed as they say', frame(Buffer.from('garbage'), 1), GZIP, /valid gzip/],
  ['compressed bytes that are cut off', frame(gzipSync(paddedBody(5_000)).subarray(0, 20), 1), GZIP, /valid gzip/],
  ['a compression that is not named', frame(gzipSync(paddedBody(100)), 1), {}, /no grpc-encoding header/],
])('%s: INVALID_ARGUMENT, and the connection serves on', async (_name, bytes, headers, message) => {
  const client = bench.client();
  expect(await client.call(bytes, TRACES_PATH, headers)).toMatchObject({
    code: 3,
    message: expect.stringMatching(message),
  });
  expect(await client.call(frame(paddedBody(100)))).toMatchObject({ code: 0 });
});

test('OTLP over HTTP/1 is answered with the right address, once in the log', async () => {
  for (let time = 0; time < 3; time++) {
    const connection = await bench.connect();
    connection.write('POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n');
    const answer = await connection.received(/4318/);
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*send OTLP over HTTP to http:\/\/127.0.0.1:4318\.\n$/s);
    await connection.untilClosed();
  }
  expect(bench.logger.lines.filter(({ fields }) => fields.reason === 'protocol')).toHaveLength(1);
});

test('TLS is closed, and the log says what the sender has to change', async () => {
  const connection = await bench.connect();
  connection.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
  await connection.untilClosed();
  expect(bench.logger.lines.at(-1)?.fields.detail).toMatch(/without TLS.*OTEL_EXPORTER_OTLP_INSECURE=true/);
});

test.each([
  ['zeros', Buffer.alloc(1_000)],
  ['half the preface and something else', Buffer.from(`${PREFACE.slice(0, 12)}garbage`)],
  ['the preface and garbage', Buffer.concat([Buffer.from(PREFACE), Buffer.alloc(1_000, 0xff)])],
  ['the preface and a header that never ends', endlessHeader()],
])('%s: the connection is closed, or waits to be', async (_name, bytes) => {
  const connection = await bench.connect();
  for (const byte of bytes.subarray(0, 30)) connection.write(Buffer.of(byte));
  connection.write(bytes.subarray(30));
  connection.end();
  await connection.untilClosed();
});

test('1,000 connections that are reset in the middle of a message leave nothing behind', async () => {
  const bytes = frame(Buffer.alloc(100), 0, 1_000);
  for (let round = 0; round < 20; round++) {
    const clients = Array.from({ length: 50 }, () => new GrpcClient(bench.port));
    for (const client of clients) client.begin().write(bytes);
    await until('calls under way', () => bench.intake.inFlightBytes > 0);
    for (const client of clients) client.destroy();
  }
  await until('the last one to be gone', () => connectionCount() === 0);
});

test('1,000 silent connections are held, and serve', async () => {
  const sockets = Array.from({ length: 1_000 }, () => connect(bench.port, '127.0.0.1').on('error', () => {}));
  await until('all of them', () => connectionCount() === 1_000);
  expect(await bench.client().call(frame(paddedBody(100)))).toMatchObject({ code: 0 });
  for (const socket of sockets) socket.resetAndDestroy();
  await until('the last one to be gone', () => connectionCount() <= 1);
});

test('1,000 calls of one connection, each reset at once, are taken one after the other', async () => {
  const client = bench.client();
  for (let count = 0; count < 1_000; count++) {
    const stream = client.begin();
    stream.write(frame(Buffer.alloc(10), 0, 100));
    stream.close(8);
    if (count % 50 === 0) await client.call(frame(paddedBody(10)));
  }
});

function connectionCount(): number {
  return Number(bench.health.report().checks[0]?.state.details?.connectionCount);
}
