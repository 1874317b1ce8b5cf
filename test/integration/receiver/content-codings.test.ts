import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const TRACES = readFileSync('test/fixture/samples/build-mixed/otlp/002-traces.bin');
const GZIPPED = gzipSync(TRACES);

let bench: ReceiverBench;
let plain: string | undefined;
beforeAll(async () => {
  bench = await ReceiverBench.start();
  await bench.postTraces(TRACES);
  plain = bench.consumer.deliveries.at(-1)?.passthrough[0]?.body;
});
afterAll(() => bench.stop());

test.each([
  ['identity', TRACES],
  ['gzip', GZIPPED],
  ['gzip', gzipSync(TRACES, { level: 0 })],
  ['deflate', deflateSync(TRACES)],
  ['deflate', deflateSync(TRACES, { level: 0, windowBits: 9 })],
  ['deflate', deflateRawSync(TRACES)],
  ['deflate', deflateRawSync(TRACES, { level: 0 })],
  ['deflate', deflateRawSync(TRACES, { strategy: 4 })],
  // Members one after the other are one body (RFC 1952, 2.2).
  ['gzip', Buffer.concat([gzipSync(TRACES.subarray(0, 100)), gzipSync(TRACES.subarray(100))])],
])('a body in %s arrives as it was', async (coding, body) => {
  expect(await bench.postTraces(body, { 'Content-Encoding': coding })).toMatchObject({ status: 200 });
  expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.body).toBe(plain);
});

test('a body in zstd arrives as it was, in whatever pieces', async () => {
  const tar = readFileSync('test/fixture/packed/build-mixed.traces.zst');
  for (const pieces of [[tar], Array.from(tar, (_, i) => tar.subarray(i, i + 1))]) {
    expect(await bench.postTraces(pieces, { 'Content-Encoding': 'zstd' })).toMatchObject({ status: 200 });
    expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.body).toBe(plain);
  }
});

test('zstd is unpacked within the limits of other codings', async () => {
  const headers = { 'Content-Encoding': 'zstd' };
  // 200 MB of zeros; a window of 64 MiB; a frame that is cut off; and what is none at all.
  const bomb = readFileSync('test/fixture/packed/zeros.jsonl.zst');
  expect(await bench.postTraces(bomb, headers)).toMatchObject({ status: 413 });
  expect(await bench.postTraces(Buffer.from('28b52ffd0080', 'hex'), headers)).toMatchObject({ status: 400 });
  const packed = readFileSync('test/fixture/packed/build-mixed.traces.zst');
  expect(await bench.postTraces(packed.subarray(0, -20), headers)).toMatchObject({ status: 400 });
  expect(await bench.postTraces(TRACES, headers)).toMatchObject({ status: 400 });
  for (const coding of ['br', 'snappy', 'lz4']) {
    expect(await bench.postTraces(TRACES, { 'Content-Encoding': coding })).toMatchObject({ status: 415 });
  }
});

test('a sender that writes a refused body in zstd to its end before it reads gets the answer', async () => {
  const bomb = readFileSync('test/fixture/packed/zeros.jsonl.zst');
  // More than connections of this machine hold by themselves.
  const body = Buffer.concat([bomb, Buffer.alloc(15 * 2 ** 20)]);
  const socket = connect(bench.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  const head = ['POST /v1/traces HTTP/1.1', 'Host: localhost', 'Content-Type: application/x-protobuf'];
  socket.write([...head, 'Content-Encoding: zstd', `Content-Length: ${body.length}`, '', ''].join('\r\n'));
  await new Promise<void>((resolve, reject) => socket.write(body, (error) => (error ? reject(error) : resolve())));
  const answered = once(socket, 'data');
  socket.resume();
  const [answer] = await answered;
  expect(String(answer)).toMatch(/^HTTP\/1.1 413/);
  socket.destroy();
});

test('a body in pieces of one byte arrives as it was', async () => {
  const pieces = Array.from({ length: 300 }, (_, i) => GZIPPED.subarray(i, i + 1));
  expect(await bench.postTraces([...pieces, GZIPPED.subarray(300)], { 'Content-Encoding': 'gzip' })).toMatchObject({
    status: 200,
  });
  expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.body).toBe(plain);
});

test('an empty body is empty in every coding', async () => {
  for (const coding of ['identity', 'gzip', 'deflate', 'zstd']) {
    expect(await bench.postTraces(Buffer.alloc(0), { 'Content-Encoding': coding })).toMatchObject({ status: 200 });
  }
});

const corrupted = Buffer.from(GZIPPED);
corrupted.fill(0x55, 200, 260);

test.each([
  ['gzip', GZIPPED.subarray(0, -1)],
  ['gzip', GZIPPED.subarray(0, GZIPPED.length / 2)],
  ['gzip', GZIPPED.subarray(0, 5)],
  ['gzip', corrupted],
  ['gzip', Buffer.concat([GZIPPED, GZIPPED.subarray(0, 20)])],
  ['gzip', TRACES],
  ['gzip', deflateSync(TRACES)],
  ['deflate', GZIPPED],
  ['deflate', deflateSync(TRACES).subarray(0, -5)],
  ['deflate', deflateRawSync(TRACES).subarray(0, -5)],
])('a body that is not whole and valid %s is 400', async (coding, body) => {
  const before = bench.consumer.deliveries.length;
  expect(await bench.postTraces(body, { 'Content-Encoding': coding })).toMatchObject({ status: 400 });
  expect(bench.consumer.deliveries).toHaveLength(before);
});

test('a refused body says what was wrong with it', async () => {
  const answer = await bench.postJson('{}', { 'Content-Encoding': 'gzip' });
  expect(JSON.parse(answer.body.toString())).toEqual({
    code: 3,
    message: 'The body is not whole and valid gzip (incorrect header check).',
  });
});
