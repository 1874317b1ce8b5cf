import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { frame, GrpcClient, LOGS_PATH, TRACES_PATH } from '../fake/grpc-client.js';
import { RawConnection } from '../fake/http-client.js';
import { paddedBody } from '../fake/padded-body.js';
import { SAMPLES, sampleTraceId } from '../fake/sample-run.js';
import { resetCall } from '../fuzz/http2-bytes.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { expectPeakMemory } from '../tool/peak-memory.js';
import { sendSample } from '../tool/send-sample.js';

const GZIP = { 'grpc-encoding': 'gzip' };
const ended: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function start(...args: string[]): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args });
  ended.push(() => bridge.remove());
  return bridge;
}

function client(bridge: BridgeProcess): GrpcClient {
  const opened = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
  ended.push(() => opened.destroy());
  return opened;
}

async function sendOverGrpc(bridge: BridgeProcess, run: string): Promise<void> {
  const sender = client(bridge);
  const folder = join(SAMPLES, run, 'otlp');
  for (const [index, file] of readdirSync(folder).sort().entries()) {
    const path = file.includes('traces') ? TRACES_PATH : LOGS_PATH;
    const body = readFileSync(join(folder, file));
    const isPacked = index % 2 === 1;
    const message = isPacked ? frame(gzipSync(body), 1) : frame(body);
    expect(await sender.call(message, path, isPacked ? GZIP : {})).toMatchObject({ code: 0 });
  }
}

describe('OTLP over gRPC', () => {
  test.each(['build-clean', 'build-mixed', 'overlapping'])(
    '%s: the record log is that of HTTP, byte by byte',
    async (run) => {
      const [overHttp, overGrpc] = [await start(), await start()];
      await sendSample(overHttp.otlpUrl, run);
      await sendOverGrpc(overGrpc, run);
      const traceIds = overHttp.traceIds();
      expect(overGrpc.traceIds()).toEqual(traceIds);
      for (const traceId of traceIds) {
        await Promise.all([overHttp.finished(traceId), overGrpc.finished(traceId)]);
        const log = (bridge: BridgeProcess) => readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'));
        expect(log(overGrpc).equals(log(overHttp))).toBe(true);
      }
    },
  );

  test('what was answered OK is there after the end that follows at once, and the program ends with 0', async () => {
    const bridge = await start();
    await sendOverGrpc(bridge, 'build-clean');
    expect(await bridge.stop()).toBe(0);
    expect(bridge.traceIds()).toEqual([sampleTraceId('build-clean')]);
  });

  test('compressed bombs are taken one by one or refused, and honest senders served after them', async () => {
    const bridge = await start('--max-memory', '384MiB');
    const sender = client(bridge);
    await sender.call(frame(paddedBody(10)));
    // Inflated all at once they would take 2 GB.
    const bomb = frame(gzipSync(paddedBody(20 * 2 ** 20)), 1);
    const answers = await Promise.all(Array.from({ length: 100 }, () => sender.call(bomb, TRACES_PATH, GZIP)));
    expect(answers.filter(({ code }) => code !== 0).every(({ code }) => code === 14 || code === 8)).toBe(true);
    expect(await sender.call(frame(paddedBody(10)))).toMatchObject({ code: 0 });
    expectPeakMemory(bridge.child.pid, 384);
  });

  test.each([
    ['without a content type', [[':path', '/']]],
    [
      'of a path that is not there',
      [
        [':path', '/a.b/C'],
        ['content-type', 'application/grpc'],
      ],
    ],
    [
      'of a method that is there',
      [
        [':path', TRACES_PATH],
        ['content-type', 'application/grpc'],
      ],
    ],
  ] as const)('a call %s that is reset in the segment of its header is no harm', async (_name, fields) => {
    const bridge = await start();
    const port = Number(new URL(bridge.grpcUrl).port);
    const honest = client(bridge);
    expect(await honest.call(frame(paddedBody(10)))).toMatchObject({ code: 0 });
    for (let count = 0; count < 20; count++) {
      const connection = await RawConnection.open(port);
      connection.write(resetCall(fields));
      connection.end();
      await connection.untilClosed();
    }
    expect(await honest.call(frame(paddedBody(10)))).toMatchObject({ code: 0 });
    expect(await bridge.stop(), bridge.stderr).toBe(0);
  });

  test('where another program has the default port, the rest is served and the log says so', async () => {
    const other = createServer().listen(4317, '127.0.0.1');
    // A program of the machine that has it already is as good.
    await new Promise((resolve) => other.once('listening', resolve).once('error', resolve));
    ended.push(() => void other.close());
    const bridge = await BridgeProcess.start({ usesDefaultGrpc: true });
    ended.push(() => bridge.remove());
    expect(bridge.stderr).toMatch(
      /127\.0\.0\.1:4317 is in use by another program.*--grpc.*OTLP over gRPC is not received/,
    );
    expect(bridge.stderr).not.toMatch(/OTLP over gRPC at/);
    expect((await fetch(`${bridge.webUrl}/readyz`)).status).toBe(200);
  });
});
