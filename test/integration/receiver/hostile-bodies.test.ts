import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RawConnection } from '../../fake/http-client.js';
import { ReceiverBench } from '../../fake/receiver-bench.js';

const MIB = 1024 * 1024;
const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', name: 'a' };
const ONE_SPAN = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [SPAN] }] }] });
const HEADER = 'POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
const GOOD_REQUEST = `${HEADER}Content-Length: ${ONE_SPAN.length}\r\n\r\n${ONE_SPAN}`;

let bench: ReceiverBench;
beforeAll(async () => {
  bench = await ReceiverBench.start();
});
afterAll(() => bench.stop());

async function expectAlive(): Promise<void> {
  const before = bench.consumer.deliveries.length;
  expect(await bench.postJson(ONE_SPAN)).toMatchObject({ status: 200 });
  expect(bench.consumer.deliveries).toHaveLength(before + 1);
}

test('a gzip bomb is stopped at the limit', async () => {
  // 6.4 GB of zeros in 6.4 MB.
  const member = gzipSync(Buffer.alloc(64 * MIB));
  const bomb = Buffer.concat(Array.from({ length: 100 }, () => member));
  expect(await bench.postTraces(bomb, { 'Content-Encoding': 'gzip' })).toMatchObject({ status: 413 });
  await expectAlive();
});

/** A protobuf message nested in itself: each level is this field, length-delimited. */
function nested(levels: number, tags: readonly number[]): Uint8Array {
  let body = Buffer.alloc(0);
  for (let level = 0; level < levels; level++) {
    const length: number[] = [];
    for (let rest = body.length; ; rest >>>= 7) {
      length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
      if (rest <= 0x7f) break;
    }
    body = Buffer.concat([Buffer.from([tags[level % tags.length] ?? 0, ...length]), body]);
  }
  return body;
}

// resource_spans { resource { attributes { value { array_value { values { array_value … } } } } } }
const DEEP_VALUE = nested(5_000, [0x0a, 0x2a]);
const deepAttribute = [0x12, 0x0a, 0x0a, 0x0a].reduce<Uint8Array>((body, tag) => wrap(tag, body), DEEP_VALUE);

function wrap(tag: number, body: Uint8Array): Uint8Array {
  const length = [(body.length & 0x7f) | 0x80, ((body.length >> 7) & 0x7f) | 0x80, body.length >> 14];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

test.each([
  ['nested too deeply', deepAttribute],
  ['nested in groups without end', Buffer.alloc(1_000_000, 0x0b)],
  ['with a varint of 100 bytes', Buffer.concat([Buffer.from([0x0a]), Buffer.alloc(100, 0xff)])],
  ['with a tag of 100 bytes', Buffer.alloc(100, 0xff)],
  ['with a length of 2 GiB', Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00])],
  ['with a length beyond its end', Buffer.from([0x0a, 0x05, 0x0a])],
  ['that ends inside a field', Buffer.from([0x0a])],
])('protobuf %s is 400', async (_name, body) => {
  expect(await bench.postTraces(body)).toMatchObject({ status: 400 });
  await expectAlive();
});

test.each([
  ['nested too deeply', `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`],
  [
    'nested too deeply in an attribute',
    attributeOf(`${'{"arrayValue":{"values":['.repeat(50_000)}{}${']}}'.repeat(50_000)}`),
  ],
  ['that is cut off', ONE_SPAN.slice(0, -1)],
  ['that is no object', '[]'],
  ['that is null', 'null'],
  ['that is empty', ''],
  ['with a number for a list', '{"resourceSpans":5}'],
  ['with a text for a span', '{"resourceSpans":[{"scopeSpans":[{"spans":["a"]}]}]}'],
  ['with an object for a time', ONE_SPAN.replace('"name"', '"startTimeUnixNano":{},"name"')],
  ['that is not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31]).toString('latin1')],
])('JSON %s is 400', async (_name, body) => {
  expect(await bench.postJson(body)).toMatchObject({ status: 400 });
  await expectAlive();
});

function attributeOf(value: string): string {
  return `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":${value}}]}}]}`;
}

test('random bytes are taken or refused, and the process lives', async () => {
  const headers = fc.record({
    'Content-Type': fc.constantFrom('application/x-protobuf', 'application/json'),
    'Content-Encoding': fc.constantFrom('identity', 'gzip', 'deflate'),
  });
  const path = fc.constantFrom('/v1/traces', '/v1/logs');
  const sending = fc.record({ path, headers, body: fc.uint8Array({ maxLength: 300 }) });
  await fc.assert(
    fc.asyncProperty(sending, async (request) => {
      expect([200, 400]).toContain((await bench.send(request)).status);
    }),
    { numRuns: 300 },
  );
  await expectAlive();
});

test('a valid body with random bytes in it is taken or refused, and the process lives', async () => {
  const position = fc.nat(ONE_SPAN.length - 1);
  await fc.assert(
    fc.asyncProperty(position, fc.uint8Array({ maxLength: 8 }), async (at, bytes) => {
      const body = Buffer.from(ONE_SPAN);
      body.set(bytes.subarray(0, body.length - at), at);
      const headers = { 'Content-Type': 'application/json' };
      expect([200, 400]).toContain((await bench.send({ path: '/v1/traces', headers, body })).status);
    }),
    { numRuns: 200 },
  );
  await expectAlive();
});

test('bytes that are not HTTP are 400 or the end of the connection', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
      const connection = await RawConnection.open(bench.port);
      connection.write(bytes);
      connection.end();
      expect(await connection.untilClosed()).toMatch(/^$|^HTTP\/1.1 400 /);
    }),
    { numRuns: 100 },
  );
  await expectAlive();
});

test('requests sent without waiting are answered one after the other', async () => {
  const connection = await bench.connect();
  const before = bench.consumer.deliveries.length;
  connection.write(GOOD_REQUEST.repeat(3));
  await connection.received(/(HTTP\/1.1 200 OK.*){3}/s);
  expect(bench.consumer.deliveries).toHaveLength(before + 3);
  connection.destroy();
});

test('garbage behind a good request does not take the good one with it', async () => {
  const connection = await bench.connect();
  const before = bench.consumer.deliveries.length;
  connection.write(GOOD_REQUEST);
  await connection.received(/HTTP\/1.1 200 OK/);
  connection.write('\0\x01garbage\r\n\r\n');
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 200 .*HTTP\/1.1 400 Bad Request/s);
  expect(bench.consumer.deliveries).toHaveLength(before + 1);
  await expectAlive();
});

test('garbage in the same packet as a good request ends the connection, and the process lives', async () => {
  const connection = await bench.connect();
  connection.write(`${GOOD_REQUEST}\0\x01garbage\r\n\r\n`);
  await connection.untilClosed();
  await expectAlive();
});

test.each([
  ['two different lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n'],
  ['a length and chunks', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n'],
  ['a negative length', 'Content-Length: -1\r\n'],
  ['a header of 20 KiB', `X: ${'x'.repeat(20 * 1024)}\r\n`],
])('a request with %s is refused', async (_name, lines) => {
  const connection = await bench.connect();
  connection.write(`${HEADER}${lines}\r\n`);
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1.1 4(00|31) /);
  await expectAlive();
});
