import { readFileSync } from 'node:fs';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConsumeError } from '../../../../src/record/record-batch.js';
import { GrpcBench } from '../../../fake/grpc-bench.js';
import { frame, GrpcClient, LOGS_PATH, TRACES_PATH } from '../../../fake/grpc-client.js';
import { until } from '../../../tool/until.js';

const TRACES = readFileSync('test/fixture/samples/build-mixed/otlp/002-traces.bin');
const LOGS = readFileSync('test/fixture/samples/build-mixed/otlp/001-logs.bin');
const OK_EMPTY = { code: 0, body: Buffer.alloc(5) };

let bench: GrpcBench;
beforeEach(async () => {
  bench = await GrpcBench.start();
});
afterEach(() => bench.stop());

test("the engine's own bodies are taken, and answered with an empty message", async () => {
  const client = bench.client();
  for (const [path, body, signal] of [
    [TRACES_PATH, TRACES, 'traces'],
    [LOGS_PATH, LOGS, 'logs'],
  ] as const) {
    expect(await client.call(frame(body), path)).toMatchObject(OK_EMPTY);
    expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.signal).toBe(signal);
  }
});

test.each([
  ['gzip', gzipSync(TRACES)],
  ['deflate', deflateSync(TRACES)],
])('a message in %s is taken as one that is not', async (encoding, packed) => {
  const client = bench.client();
  await client.call(frame(TRACES));
  expect(await client.call(frame(packed, 1), TRACES_PATH, { 'grpc-encoding': encoding })).toMatchObject(OK_EMPTY);
  const [plain, unpacked] = bench.consumer.deliveries;
  expect(unpacked).toEqual(plain);
});

test('a message that is not compressed is taken from a sender that sometimes does', async () => {
  expect(await bench.client().call(frame(TRACES), TRACES_PATH, { 'grpc-encoding': 'gzip' })).toMatchObject(OK_EMPTY);
});

test('a message may come in pieces of a byte, and its prefix, too', async () => {
  const stream = bench.client().begin();
  const answer = GrpcClient.answer(stream);
  // resource_spans { scope_spans { spans {} } }
  for (const byte of frame(Buffer.from('0a0412021200', 'hex'))) {
    await new Promise((resolve) => stream.write(Buffer.of(byte), resolve));
  }
  stream.end();
  expect(await answer).toMatchObject({ code: 0 });
});

test('an empty message is an empty request', async () => {
  expect(await bench.client().call(frame(Buffer.alloc(0)))).toMatchObject(OK_EMPTY);
  expect(bench.consumer.deliveries).toEqual([]);
});

test('a span without a valid id is counted in partial_success', async () => {
  // resource_spans { scope_spans { spans {} } }
  const answer = await bench.client().call(frame(Buffer.from('0a0412021200', 'hex')));
  // partial_success { rejected_spans: 1, error_message: "without a valid id" }
  const message = Buffer.from('without a valid id');
  const expected = frame(Buffer.concat([Buffer.from([0x0a, 22, 0x08, 1, 0x12, 18]), message]));
  expect(answer).toMatchObject({ code: 0, body: expected });
});

test('what is not OTLP is INVALID_ARGUMENT, which is not sent again', async () => {
  const answer = await bench.client().call(frame(Buffer.from([0x0a, 0x7f])));
  expect(answer).toMatchObject({ code: 3, message: expect.stringMatching(/not an OTLP traces request/) });
  expect(answer.details).toHaveLength(0);
});

test('another compression is UNIMPLEMENTED and says which are taken', async () => {
  const answer = await bench.client().call(frame(TRACES, 1), TRACES_PATH, { 'grpc-encoding': 'br' });
  expect(answer).toMatchObject({ code: 12, headers: { 'grpc-accept-encoding': 'identity,deflate,gzip,zstd' } });
  expect(answer.message).toBe('The encoding "br" is not supported; send gzip, deflate, zstd or no compression.');
});

test('metrics are UNIMPLEMENTED with a sentence that says how to stop them, and so is what nobody knows', async () => {
  const client = bench.client();
  const metrics = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
  const answer = await client.call(frame(Buffer.alloc(0)), metrics);
  expect(answer).toMatchObject({ code: 12, message: expect.stringContaining('OTEL_METRICS_EXPORTER=none') });
  expect(await client.call(frame(Buffer.alloc(0)), '/a.B/C')).toMatchObject({ code: 12 });
});

test('records that cannot be kept now are UNAVAILABLE with a RetryInfo, and those that never will be are not', async () => {
  const client = bench.client();
  for (const code of ['unavailable', 'overloaded'] as const) {
    bench.consumer.failWith(new ConsumeError(code, 'The disk is full.', 4_001));
    const answer = await client.call(frame(TRACES));
    expect(answer).toMatchObject({ code: 14, message: 'The disk is full.' });
    // code: 14, message, details { type_url: "…RetryInfo", value: retry_delay { seconds: 5, nanos: 0 } }
    const any = Buffer.concat([
      Buffer.from([0x0a, 40]),
      Buffer.from('type.googleapis.com/google.rpc.RetryInfo'),
      Buffer.from([0x12, 6, 0x0a, 4, 0x08, 5, 0x10, 0]),
    ]);
    const text = Buffer.from('The disk is full.');
    const status = [Buffer.from([0x08, 14, 0x12, text.length]), text, Buffer.from([0x1a, any.length]), any];
    expect(answer.details).toEqual(Buffer.concat(status));
  }
  bench.consumer.failWith(new ConsumeError('refused', 'Not these.', 0));
  expect(await client.call(frame(TRACES))).toMatchObject({ code: 3, details: Buffer.alloc(0) });
});

test('a fault of the program is INTERNAL, without its message, and logged with it', async () => {
  bench.consumer.failWith(new Error('secret path'));
  const answer = await bench.client().call(frame(TRACES));
  expect(answer).toMatchObject({ code: 13, message: expect.not.stringContaining('secret') });
  expect(bench.logger.lines.at(-1)).toMatchObject({
    level: 'error',
    fields: { stack: expect.stringMatching('secret') },
  });
});

test('gRPC is loaded for the first connection that speaks it, and the check says where it is', async () => {
  expect(bench.health.report()).toMatchObject({
    ready: true,
    checks: [{ name: 'otlp-grpc-receiver', state: { details: { url: `http://127.0.0.1:${bench.port}` } } }],
  });
  await bench.client().call(frame(TRACES));
  await until('the connection in the check', () => {
    const [check] = bench.health.report().checks;
    return check?.state.details?.connectionCount === 1;
  });
});
