import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConsumeError } from '../../../src/record/record-batch.js';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const TRACES = readFileSync('test/fixture/samples/build-mixed/otlp/002-traces.bin');
const LOGS = readFileSync('test/fixture/samples/build-mixed/otlp/001-logs.bin');
const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', name: 'a' };
const PROTOBUF = { 'Content-Type': 'application/x-protobuf' };

let bench: ReceiverBench;
beforeAll(async () => {
  bench = await ReceiverBench.start();
});
afterAll(() => bench.stop());

function spans(...list: object[]): string {
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: list }] }] });
}

test("the engine's own bodies are taken, and answered with an empty message in protobuf", async () => {
  for (const [path, body] of [
    ['/v1/traces', TRACES],
    ['/v1/logs', LOGS],
  ] as const) {
    const answer = await bench.send({ path, headers: PROTOBUF, body });
    expect(answer).toMatchObject({ status: 200, body: Buffer.alloc(0) });
    expect(answer.headers['content-type']).toBe('application/x-protobuf');
    const signal = path === '/v1/traces' ? 'traces' : 'logs';
    expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.signal).toBe(signal);
  }
});

test.each(['/v1/traces/', '/V1/Traces', '/v1/traces?from=agent'])('%s is answered as /v1/traces is', async (path) => {
  const usual = await bench.send({ path: '/v1/traces', headers: PROTOBUF, body: TRACES });
  const answer = await bench.send({ path, headers: PROTOBUF, body: TRACES });
  const { date: _, ...headers } = answer.headers;
  expect(answer).toMatchObject({ status: usual.status, body: usual.body });
  expect(usual.headers).toMatchObject(headers);
});

test('JSON is answered in JSON, with a charset parameter or without', async () => {
  for (const contentType of ['application/json', 'application/json; charset=utf-8']) {
    const answer = await bench.postJson(spans(SPAN), { 'Content-Type': contentType });
    expect(answer).toMatchObject({ status: 200, body: Buffer.from('{}') });
    expect(answer.headers['content-type']).toBe('application/json');
  }
});

test('a span without a valid id is counted in partial_success, and the rest is kept', async () => {
  const answer = await bench.postJson(spans(SPAN, { ...SPAN, spanId: '0000000000000000' }, { ...SPAN, traceId: '12' }));
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body.toString())).toEqual({
    partialSuccess: { rejectedSpans: '2', errorMessage: 'without a valid id' },
  });
  expect(bench.consumer.deliveries.at(-1)?.passthrough[0]?.recordCount).toBe(1);
});

test('partial_success comes in protobuf where the request did', async () => {
  // resource_spans { scope_spans { spans {} } }
  const answer = await bench.postTraces(Buffer.from('0a0412021200', 'hex'));
  expect(answer.status).toBe(200);
  // partial_success { rejected_spans: 1, error_message: "without a valid id" }
  const message = Buffer.from('without a valid id');
  expect(answer.body).toEqual(Buffer.concat([Buffer.from([0x0a, 22, 0x08, 1, 0x12, 18]), message]));
});

test('an empty protobuf body is an empty request', async () => {
  const before = bench.consumer.deliveries.length;
  expect(await bench.postTraces(Buffer.alloc(0))).toMatchObject({ status: 200, body: Buffer.alloc(0) });
  expect(bench.consumer.deliveries).toHaveLength(before);
});

test('what cannot be parsed is 400 with a google.rpc.Status in the encoding of the request', async () => {
  const json = await bench.postJson('{"resourceSpans":');
  expect(json.status).toBe(400);
  expect(json.headers['content-type']).toBe('application/json');
  expect(JSON.parse(json.body.toString())).toMatchObject({ code: 3, message: expect.stringMatching(/JSON/i) });

  const protobuf = await bench.postTraces(Buffer.from([0x0a, 0x7f]));
  expect(protobuf.status).toBe(400);
  expect(protobuf.headers['content-type']).toBe('application/x-protobuf');
  expect([...protobuf.body.subarray(0, 3)]).toEqual([0x08, 3, 0x12]);
});

test.each(['GET', 'PUT', 'DELETE', 'OPTIONS'])('%s is 405 and says that POST is allowed', async (method) => {
  const answer = await bench.send({ path: '/v1/logs', method });
  expect(answer).toMatchObject({ status: 405, headers: { allow: 'POST' } });
  expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 12 });
});

test('other content types are 415, answered in JSON', async () => {
  for (const headers of [{}, { 'Content-Type': 'text/plain' }]) {
    const answer = await bench.send({ path: '/v1/traces', headers, body: TRACES });
    expect(answer.status).toBe(415);
    expect(JSON.parse(answer.body.toString()).message).toContain('application/x-protobuf or application/json');
  }
});

test('other content encodings are 415 and say which are taken', async () => {
  for (const coding of ['br', 'snappy', 'gzip, deflate']) {
    const answer = await bench.postTraces(TRACES, { 'Content-Encoding': coding });
    expect(answer).toMatchObject({ status: 415, headers: { 'accept-encoding': 'gzip, deflate, zstd' } });
  }
});

test('metrics are 404 with a sentence that says how to stop them', async () => {
  const answer = await bench.send({ path: '/v1/metrics', headers: { 'Content-Type': 'application/json' } });
  expect(answer.status).toBe(404);
  expect(JSON.parse(answer.body.toString()).message).toContain('OTEL_METRICS_EXPORTER=none');
});

test('an unknown path is 404 with a sentence that names the right ones', async () => {
  const answer = await bench.send({ path: '/traces', headers: { 'Content-Type': 'application/json' } });
  expect(answer.status).toBe(404);
  expect(JSON.parse(answer.body.toString()).message).toMatch(/\/v1\/traces.*\/v1\/logs.*\/healthz.*\/readyz/);
});

test('health is answered on this port, too', async () => {
  expect(await bench.send({ path: '/healthz', method: 'GET' })).toMatchObject({ status: 200 });
  const ready = await bench.send({ path: '/readyz?verbose', method: 'GET' });
  expect(JSON.parse(ready.body.toString()).checks).toContainEqual(
    expect.objectContaining({ name: 'otlp-http-receiver', ready: true, details: expect.anything() }),
  );
});

test('no answer carries headers that nobody needs', async () => {
  const { headers } = await bench.postTraces(TRACES);
  expect(Object.keys(headers).sort()).toEqual(['connection', 'content-length', 'content-type', 'date']);
});

test('an answer waits until the consumer has made the records durable', async () => {
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  let answered = false;
  const answer = bench.postTraces(TRACES).finally(() => {
    answered = true;
  });
  await received;
  // A second request makes the whole round trip meanwhile.
  await bench.send({ path: '/healthz', method: 'GET' });
  expect(answered).toBe(false);
  bench.consumer.release();
  expect(await answer).toMatchObject({ status: 200 });
});

test('requests one after the other share a connection', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sending = { path: '/v1/traces', headers: PROTOBUF, body: TRACES, agent };
  const ports = [];
  for (let i = 0; i < 3; i++) ports.push((await bench.send(sending)).localPort);
  // A refused body does not cost the connection either.
  expect(await bench.send({ ...sending, body: Buffer.from([0x0a, 0x7f]) })).toMatchObject({ status: 400 });
  ports.push((await bench.send(sending)).localPort);
  agent.destroy();
  expect(new Set(ports).size).toBe(1);
});

test('a sender that asks first is answered to continue, or is refused before it sends', async () => {
  const header = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n';
  const asking = await bench.connect();
  asking.write(`${header}Content-Length: 2\r\n\r\n`);
  await asking.received(/100 Continue/);
  asking.write('{}');
  await asking.received(/HTTP\/1.1 200 OK/);
  asking.destroy();

  const tooLarge = await bench.connect();
  tooLarge.write(`${header}Content-Length: 99999999999\r\n\r\n`);
  expect(await tooLarge.untilClosed()).toMatch(/^HTTP\/1.1 413 /);
});

test.each([
  ['overloaded', 1_500, 429, '2'],
  ['unavailable', 10_000, 503, '10'],
  ['refused', 0, 400, undefined],
] as const)('a consumer that says %s after %i ms is %i with Retry-After %s', async (code, delayMs, status, seconds) => {
  const failing = await ReceiverBench.start();
  failing.consumer.failWith(new ConsumeError(code, 'the disk is full; free some space', delayMs));
  const answer = await failing.postJson(spans(SPAN));
  await failing.stop();
  expect(answer.status).toBe(status);
  expect(answer.headers['retry-after']).toBe(seconds);
  expect(JSON.parse(answer.body.toString()).message).toBe('the disk is full; free some space');
});

test('an error that nobody expected is 500 and logged, and the next request is taken', async () => {
  const failing = await ReceiverBench.start();
  failing.consumer.failWith(new TypeError('secret'));
  const answer = await failing.postTraces(TRACES);
  expect(answer.status).toBe(500);
  expect(answer.body.toString()).not.toContain('secret');
  expect(failing.logger.lines.at(-1)).toMatchObject({ level: 'error', message: 'request failed' });
  expect(await failing.postTraces(Buffer.alloc(0))).toMatchObject({ status: 200 });
  await failing.stop();
});
