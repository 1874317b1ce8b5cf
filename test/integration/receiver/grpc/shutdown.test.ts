import { afterEach, beforeEach, expect, test } from 'vitest';
import { GrpcBench } from '../../../fake/grpc-bench.js';
import { endlessHeader, frame, GrpcClient } from '../../../fake/grpc-client.js';
import { until } from '../../../tool/until.js';

const ONE_SPAN = frame(oneSpan());
const NEVER = new AbortController().signal;

let bench: GrpcBench;
beforeEach(async () => {
  bench = await GrpcBench.start();
});
afterEach(() => bench.stop());

test('a call under way is answered, and nothing new is taken meanwhile', async () => {
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const client = bench.client();
  const answer = client.call(ONE_SPAN);
  await received;
  const { port } = bench;
  const down = bench.receiver.shutdown(NEVER);
  await expect(bench.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED', port });
  expect(bench.health.report()).toMatchObject({ ready: false });
  bench.consumer.release();
  expect(await answer).toMatchObject({ code: 0 });
  await down;
  expect(client.isClosed).toBe(true);
});

test('a message that is still coming is waited for', async () => {
  const stream = bench.client().begin();
  const answer = GrpcClient.answer(stream);
  stream.write(ONE_SPAN.subarray(0, 10));
  await new Promise((resolve) => stream.once('ready', resolve));
  stream.end(ONE_SPAN.subarray(10));
  const down = bench.receiver.shutdown(NEVER);
  await down;
  expect((await answer).code === 0).toBe(bench.consumer.deliveries.length === 1);
});

test('idle connections do not hold it up, whether they were ever used or not', async () => {
  const used = bench.client();
  await used.call(ONE_SPAN);
  const silent = await bench.connect();
  const halfPreface = await bench.connect();
  halfPreface.write('PRI * ');
  const halfHeader = await bench.connect();
  halfHeader.write(endlessHeader());
  await until('all of them', () => bench.health.report().checks[0]?.state.details?.connectionCount === 4);
  await bench.receiver.shutdown(NEVER);
  await Promise.all([used, silent, halfPreface, halfHeader].map((one) => one.untilClosed()));
});

test('what is not done at the deadline is cut off', async () => {
  bench.consumer.hold();
  const received = bench.consumer.nextDelivery();
  const answer = bench.client().call(ONE_SPAN);
  await received;
  const deadline = new AbortController();
  const down = bench.receiver.shutdown(deadline.signal);
  deadline.abort();
  await down;
  expect((await answer).code).toBeUndefined();
  bench.consumer.release();
});

test('a second shutdown, and one before the start, do nothing', async () => {
  await new GrpcBench().receiver.shutdown(NEVER);
  await bench.receiver.shutdown(NEVER);
  await bench.receiver.shutdown(NEVER);
});

test('a port that another program has is an error, or a line in the log where nobody asked for it', async () => {
  const { port } = bench;
  await expect(new GrpcBench({ port }).receiver.start()).rejects.toThrow(
    `127.0.0.1:${port} is in use by another program; stop it or choose another port with --grpc HOST:PORT`,
  );
  const optional = new GrpcBench({ port, isOptional: true });
  await optional.receiver.start();
  expect(optional.receiver.address).toBeUndefined();
  expect(optional.logger.lines).toEqual([
    expect.objectContaining({ level: 'warn', message: 'OTLP over gRPC is not received' }),
  ]);
  expect(optional.health.report()).toMatchObject({ ready: true, checks: [{ state: { details: { state: 'off' } } }] });
  await optional.stop();
});

function oneSpan(): Buffer {
  const nested = (bytes: Buffer, tag: number) => Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const span = Buffer.concat([nested(Buffer.alloc(16, 1), 0x0a), nested(Buffer.alloc(8, 2), 0x12)]);
  return nested(nested(nested(span, 0x12), 0x12), 0x0a);
}
