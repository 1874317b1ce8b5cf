import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDecoding } from '../../src/otlp/create-decoding.js';
import { RawConnection } from '../fake/http-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { expectPeakMemory } from '../tool/peak-memory.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';

const MIB = 2 ** 20;
const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n';
const MAX_CONNECTIONS = 1_024;
/** What the program may have, and at most has in the end: many times less than what senders announce. */
const MAX_MEMORY_MIB = 512;

let bridge: BridgeProcess;
let port: number;

beforeAll(async () => {
  bridge = await BridgeProcess.start({ args: ['--max-memory', `${MAX_MEMORY_MIB}MiB`] });
  port = Number(new URL(bridge.otlpUrl).port);
  await expectServed();
});
afterAll(() => bridge.remove());

/** A run of an honest sender is taken. */
async function expectServed(): Promise<void> {
  const answers = await new SentRun().send(bridge.otlpUrl);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
}

async function figures(): Promise<Record<string, number>> {
  const answer = await fetch(`${bridge.webUrl}/readyz?verbose`);
  const { checks } = (await answer.json()) as { checks: { name: string; details: Record<string, number> }[] };
  return checks.find(({ name }) => name === 'otlp-http-receiver')?.details ?? {};
}

function openMany(count: number): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: count }, () => RawConnection.open(port)));
}

test('2,000 connections at once: as many as there may be stay open, the others are closed, honest ones serve on', async () => {
  const honest = await RawConnection.open(port);
  const connections = await openMany(2_000);
  for (const connection of connections) connection.write(HEADER);
  await until('the surplus to be closed', async () => ((await figures()).droppedConnectionCount ?? 0) > 900);
  expect((await figures()).connectionCount).toBeLessThanOrEqual(MAX_CONNECTIONS);
  honest.write(`${HEADER}Content-Length: 0\r\n\r\n`);
  expect(await honest.received(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 200 OK/);
  for (const connection of connections) connection.destroy();
  await until('the connections to be gone', async () => ((await figures()).connectionCount ?? 0) < 10);
  await expectServed();
});

test('400 senders that announce 16 MiB each and send it slowly: only those that there is memory for are let in', async () => {
  const connections = await openMany(400);
  for (const connection of connections) {
    connection.write(`${HEADER}Content-Length: ${16 * MIB}\r\n\r\n`);
    connection.write(Buffer.alloc(1_000));
  }
  await until('the bodies that are let in', async () => ((await figures()).inFlightBytes ?? 0) >= 16 * MIB);
  const refused = connections.slice(-100).map((connection) => connection.received(/--max-memory/));
  for (const text of await Promise.all(refused)) expect(text).toMatch(/^HTTP\/1.1 503 .*Retry-After: /s);
  expect((await fetch(`${bridge.otlpUrl}/healthz`)).status).toBe(200);
  for (const connection of connections) connection.destroy();
  await until('the memory to be given back', async () => (await figures()).inFlightBytes === 0);
  await expectServed();
});

test('bodies that are refused over and over do no harm', async () => {
  const post = (body: Uint8Array<ArrayBuffer>) =>
    fetch(`${bridge.otlpUrl}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf' },
      body,
    });
  const malformed = Buffer.alloc(MIB, 0x0b);
  for (let i = 0; i < 20; i++) expect((await post(malformed)).status).toBe(400);
  for (let i = 0; i < 80; i++) expect((await post(malformed)).status).toBe(400);
  await expectServed();
});

/** So many bytes of empty messages, in the fields around them. */
function empties(byteCount: number, ...fields: readonly number[]): Buffer {
  const [inner = 0, ...around] = fields.toReversed().map((field) => (field << 3) | 2);
  return around.reduce(
    (body: Buffer, tag) => {
      const length = Buffer.alloc(5);
      // Four groups of seven bits and one more: padded, as protobuf allows.
      for (let at = 0; at < 5; at++) length[at] = ((body.length >>> (7 * at)) & 0x7f) | (at < 4 ? 0x80 : 0);
      return Buffer.concat([Buffer.of(tag), length, body]);
    },
    Buffer.alloc(byteCount, Buffer.from([inner, 0])),
  );
}

test.each([
  ['resources', [1], '50000 resources'],
  ['scopes', [1, 2], '50000 scopes'],
  ['spans', [1, 2, 2], '300000 spans'],
  ['attributes', [1, 2, 2, 9], '200000 fields in one'],
  ['links', [1, 2, 2, 13], '200000 fields in one'],
] as const)('20 KB of gzip with 10 million empty %s are refused by their number', async (_name, fields, bound) => {
  const body = gzipSync(empties(20 * MIB, ...fields), { level: 9 });
  expect(body.length).toBeLessThan(23_000);
  const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' },
    body,
  });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain(`A request may hold ${bound}`);
  await expectServed();
});

test('10 million empty objects in JSON are refused by their number', async () => {
  const body = gzipSync(
    Buffer.concat([Buffer.from('{"resourceSpans":['), Buffer.alloc(20 * MIB, '{},'), Buffer.from('{}]}')]),
  );
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, { method: 'POST', headers, body });
  expect(answer.status).toBe(400);
  // Where the last comma stands, the JSON may be cut in the middle of an object.
  expect(await answer.text()).toContain('A request may hold 50000 resources');
});

const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', name: 'a' };
const BEYOND_INT64 = String(2n ** 63n);

test.each([
  ['a trace id that is too short', { traceId: '0af7' }],
  ['a trace id that is too long', { traceId: `${SPAN.traceId}00` }],
  ['a span id that is too short', { spanId: 'b7' }],
  ['a span id of zeros', { spanId: '0000000000000000' }],
  ['no ids at all', { traceId: undefined, spanId: undefined }],
])('a span with %s is left out and counted, the one beside it is kept', async (_name, odd) => {
  const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [SPAN, { ...SPAN, ...odd }] }] }] });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, { method: 'POST', headers, body });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ partialSuccess: { rejectedSpans: '1' } });
});

test.each([
  ['beyond int64', BEYOND_INT64, 200],
  ['beyond what OTLP can say', String(2n ** 64n), 400],
  ['below zero', '-1', 400],
  ['that is no number', 'now', 400],
])("a time %s in another service's span is no harm", async (_name, time, status) => {
  const span = { ...SPAN, startTimeUnixNano: time, endTimeUnixNano: time };
  const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, { method: 'POST', headers, body });
  expect(answer.status).toBe(status);
});

async function post(type: string, body: Uint8Array<ArrayBuffer>): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': type, 'content-encoding': 'gzip' };
  const answer = await fetch(`${bridge.otlpUrl}/v1/traces`, { method: 'POST', headers, body: gzipSync(body) });
  return { status: answer.status, text: await answer.text() };
}

test.each([
  ['traces', { ...SPAN, parentSpanId: 'b7ad' }],
  ['traces', { ...SPAN, links: [{ traceId: '0af7', spanId: SPAN.spanId }] }],
  ['traces', { ...SPAN, links: [{ traceId: SPAN.traceId, spanId: `${SPAN.spanId}00` }] }],
  ['logs', { traceId: '0af7' }],
  ['logs', { traceId: SPAN.traceId, spanId: `${SPAN.spanId}00` }],
])('an item of %s with an id of a wrong length is rejected alone: %o', async (signal, item) => {
  const [groups, scopes, items, good] =
    signal === 'traces'
      ? ['resourceSpans', 'scopeSpans', 'spans', SPAN]
      : ['resourceLogs', 'scopeLogs', 'logRecords', { body: { stringValue: 'kept' } }];
  const body = JSON.stringify({ [groups]: [{ [scopes]: [{ [items]: [good, item] }] }] });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${bridge.otlpUrl}/v1/${signal}`, { method: 'POST', headers, body });
  expect(await answer.json()).toMatchObject({
    partialSuccess: {
      errorMessage: expect.stringMatching(/^1 .* with an id of a wrong length were not kept; the rest was/),
    },
  });
});

test.each([
  ['unknown members of a request', () => `{${'"a":0,'.repeat(2 * MIB)}"b":0}`],
  ['an unknown text of 20 MiB in a request', () => `{"a":"${'a'.repeat(20 * MIB)}"}`],
  ['unknown members of a resource', () => `{"resourceSpans":[{${'"a":0,'.repeat(2 * MIB)}"b":0}]}`],
])('%s may take a mebibyte in all', async (_, body) => {
  const answer = await post('application/json', Buffer.from(body()));
  expect(answer).toMatchObject({ status: 400, text: expect.stringContaining('may have 1048576 bytes') });
  await expectServed();
});

test.each(['application/json', 'application/x-protobuf'])(
  'a span of more than 16 MiB in %s is rejected alone',
  async (type) => {
    const timed = { ...SPAN, startTimeUnixNano: '1', endTimeUnixNano: '2' };
    const long = { ...timed, spanId: 'b7ad6b7169203332', name: 'a'.repeat(17 * MIB) };
    const json = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [timed, long] }] }] }));
    const { codecs } = createDecoding({ engineNames: [] });
    const body = type === 'application/json' ? json : codecs.protobuf.encode(codecs.json.decode('traces', json));
    const answer = await post(type, Buffer.from(body));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('a span or log record of more than 16777216 bytes was not kept; the rest was');
  },
);

// Linux alone changes the limit of a process that runs.
test.skipIf(process.platform !== 'linux')(
  'without a free file descriptor a request is told to come again, and then it is taken',
  async () => {
    const poor = await BridgeProcess.start();
    try {
      const { hostname, port } = new URL(poor.otlpUrl);
      const known = await RawConnection.open(Number(port));
      const run = new SentRun();
      const [first] = run.bodies;
      if (first === undefined) throw new Error('the sample has no bodies');
      execFileSync('prlimit', ['--pid', String(poor.child.pid), '--nofile=128:128']);
      const others = Array.from({ length: 220 }, () => connect(Number(port), hostname));
      for (const other of others) other.on('error', () => {});
      await until('no free descriptor', () => readdirSync(`/proc/${poor.child.pid}/fd`).length >= 128);
      known.write(`${HEADER.replace('traces', first.signal)}Content-Length: ${first.bytes.length}\r\n\r\n`);
      known.write(first.bytes);
      expect(await known.received(/\r\n\r\n./)).toMatch(/^HTTP\/1.1 503 .*Retry-After: \d+/s);
      for (const other of others) other.destroy();
      await until('free descriptors', () => readdirSync(`/proc/${poor.child.pid}/fd`).length < 100);
      expect((await run.send(poor.otlpUrl)).map(({ status }) => status)).toEqual([200, 200]);
      expect(poor.stderr).not.toContain('internal error');
      expect(await poor.stop()).toBe(0);
    } finally {
      await poor.remove();
    }
  },
);

test('after all this the bridge is ready, and ends cleanly', async () => {
  expect((await fetch(`${bridge.webUrl}/readyz`)).status).toBe(200);
  expectPeakMemory(bridge.child.pid, MAX_MEMORY_MIB);
  expect(bridge.stderr).not.toContain('internal error');
  expect(await bridge.stop()).toBe(0);
});
