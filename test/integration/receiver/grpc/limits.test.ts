import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import type { Guard } from '../../../../src/core/guard.js';
import { GrpcBench } from '../../../fake/grpc-bench.js';
import { endlessHeader, frame, GrpcClient, TRACES_PATH } from '../../../fake/grpc-client.js';
import { paddedBody } from '../../../fake/padded-body.js';
import { until } from '../../../tool/until.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const GZIP = { 'grpc-encoding': 'gzip' };
const OK = { code: 0 };
const TOO_LARGE = { code: 8, message: expect.stringMatching(/send smaller batches/), details: Buffer.alloc(0) };
const BUSY = { code: 14, message: expect.stringMatching(/again later/) };

let bench: GrpcBench;
afterEach(() => bench.stop());

test('a message of exactly 64 MiB is taken and one of a byte more is not, compressed or not', async () => {
  bench = await GrpcBench.start();
  const client = bench.client();
  const largest = paddedBody(64 * MIB);
  const larger = paddedBody(64 * MIB + 1);
  expect(await client.call(frame(largest))).toMatchObject(OK);
  expect(await client.call(frame(larger))).toMatchObject(TOO_LARGE);
  expect(await client.call(frame(gzipSync(largest), 1), TRACES_PATH, GZIP)).toMatchObject(OK);
  expect(await client.call(frame(gzipSync(larger), 1), TRACES_PATH, GZIP)).toMatchObject(TOO_LARGE);
});

test('a message that announces too much is refused before it is read, and the connection serves on', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: 1_000 });
  const client = bench.client();
  const stream = client.begin();
  const answer = GrpcClient.answer(stream);
  stream.write(frame(Buffer.alloc(0), 0, 1_001));
  expect(await answer).toMatchObject(TOO_LARGE);
  expect(await client.call(frame(paddedBody(1_000)))).toMatchObject(OK);
});

test('members that inflate to nothing are counted as they come', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: 1_000 });
  const nothing = gzipSync(Buffer.alloc(0));
  const many = Buffer.concat(Array.from({ length: 51 }, () => nothing));
  expect(await bench.client().call(frame(many, 1), TRACES_PATH, GZIP)).toMatchObject(TOO_LARGE);
});

test('compressed messages together take no more memory than plain ones', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: MIB, maxInFlightBytes: 4 * MIB });
  bench.consumer.hold();
  const bomb = frame(gzipSync(paddedBody(MIB)), 1);
  const client = bench.client();
  const answers = await Promise.all(Array.from({ length: 50 }, () => client.call(bomb, TRACES_PATH, GZIP)));
  for (const answer of answers) expect([OK.code, BUSY.code]).toContain(answer.code);
  expect(bench.intake.inFlightBytes).toBe(0);
});

test('a second message is refused, also where both come in one piece', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: MIB });
  const bomb = frame(gzipSync(paddedBody(MIB)), 1);
  const answer = await bench.client().call(Buffer.concat([bomb, bomb]), TRACES_PATH, GZIP);
  expect(answer).toMatchObject({
    code: 3,
    message: expect.stringMatching(/does not have the length that its header announces/),
  });
});

test('a message that finds no room is UNAVAILABLE before it is read, and welcome later', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: MIB, maxInFlightBytes: MIB });
  const client = bench.client();
  const first = client.begin();
  const firstAnswer = GrpcClient.answer(first);
  const message = frame(paddedBody(MIB));
  first.write(message.subarray(0, 100));
  await until('its room', () => bench.intake.inFlightBytes === MIB);
  expect(await GrpcClient.answer(client.begin())).toMatchObject(BUSY);
  first.end(message.subarray(100));
  expect(await firstAnswer).toMatchObject(OK);
  expect(await client.call(frame(paddedBody(10)))).toMatchObject(OK);
});

test('a message counts until it is answered, and one that is broken off gives its memory back', async () => {
  bench = await GrpcBench.start({ maxBodyBytes: 16 * KIB, maxInFlightBytes: 16 * KIB });
  const leaving = bench.client();
  const broken = leaving.begin();
  broken.write(frame(Buffer.alloc(10), 0, 1_000));
  await until('its room', () => bench.intake.inFlightBytes > 0);
  const gone = bench.logger.next((line) => line.fields.reason === 'aborted');
  leaving.destroy();
  await gone;
  expect(bench.intake.inFlightBytes).toBe(0);
  expect(await bench.client().call(frame(paddedBody(10)))).toMatchObject(OK);
});

test('what takes too long to arrive is DEADLINE_EXCEEDED with a RetryInfo, begun or not, and its stream is closed', async () => {
  bench = await GrpcBench.start({ requestTimeoutMs: 50 });
  const client = bench.client();
  for (const beginning of [Buffer.alloc(0), Buffer.alloc(2), frame(Buffer.alloc(10), 0, 1_000)]) {
    const stream = client.begin();
    const answer = GrpcClient.answer(stream);
    stream.write(beginning);
    const { code, message, details } = await answer;
    expect({ code, message }).toEqual({ code: 4, message: 'A message has to arrive within 0.05 s; this one did not.' });
    expect(details.toString('latin1')).toContain('RetryInfo');
  }
  expect(bench.intake.inFlightBytes).toBe(0);
});

test('a guard that sees no room makes it UNAVAILABLE before anything is read', async () => {
  const guard: Guard = {
    findShortage: () => ({ message: 'The disk is full.', retryAfterMs: 5_000 }),
    onBody: () => expect.unreachable(),
  };
  bench = await GrpcBench.start({}, [guard]);
  const stream = bench.client().begin();
  expect(await GrpcClient.answer(stream)).toMatchObject({ code: 14, message: 'The disk is full.' });
});

test('connections beyond the limit are closed at once, silent ones soon, idle ones with a GOAWAY', async () => {
  bench = await GrpcBench.start({ maxConnections: 2, prefaceTimeoutMs: 100, idleTimeoutMs: 200 });
  const client = bench.client();
  expect(await client.call(frame(paddedBody(10)))).toMatchObject(OK);
  const silent = await bench.connect();
  const third = await bench.connect();
  expect(await third.untilClosed()).toBe('');
  expect(await silent.untilClosed()).toBe('');
  await client.untilClosed();
  expect(bench.health.report().checks[0]?.state.details).toMatchObject({ droppedConnectionCount: 1 });
});

test('a connection whose header never ends is cut off, and so is one whose call of another service never ends', async () => {
  bench = await GrpcBench.start({ idleTimeoutMs: 100 });
  const connection = await bench.connect();
  connection.write(endlessHeader());
  await connection.untilClosed();
  const client = bench.client();
  client.begin('/a.B/C').write(Buffer.alloc(10));
  await client.untilClosed();
});

test('a connection with a call under way is not idle', async () => {
  bench = await GrpcBench.start({ idleTimeoutMs: 50 });
  bench.consumer.hold();
  const client = bench.client();
  const received = bench.consumer.nextDelivery();
  // resource_spans { scope_spans { spans { trace_id, span_id } } }
  const span = `0a10${'01'.repeat(16)}1208${'02'.repeat(8)}`;
  const answer = client.call(frame(Buffer.from(`0a20121e121c${span}`, 'hex')));
  await received;
  const other = await bench.connect();
  other.write(endlessHeader());
  await other.untilClosed();
  expect(client.isClosed).toBe(false);
  bench.consumer.release();
  expect(await answer).toMatchObject(OK);
});
