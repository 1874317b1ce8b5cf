import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { frame, GrpcClient } from '../fake/grpc-client.js';
import { paddedBody } from '../fake/padded-body.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { BUDGET, fuzzAgain } from './budget.js';
import { readCorpus } from './corpus.js';
import { Dice } from './dice.js';
import { randomHttp1Connection } from './http1-bytes.js';
import { type ConnectionPlay, randomConnection } from './http2-bytes.js';

/** One connection for so many bodies. */
const SHARE = 2;
/** The same for the ports of HTTP. */
const HTTP_SHARE = 5;
const AT_ONCE = 32;
/** An honest sender calls after so many of them. */
const HONEST_EVERY = 100;
/** Node keeps a connection that broke the protocol until it has left a ping unanswered; fewer than this wait for that, of 1,024 that there may be. */
const MAX_OPEN = 500;

let bridge: BridgeProcess | undefined;
afterEach(() => bridge?.remove());

it(`no connection of ${BUDGET.bodyCount / SHARE} to the gRPC port ends the program, or keeps others from being served`, async () => {
  const { traces, logs } = readCorpus();
  const messages = [...traces, ...logs];
  bridge = await BridgeProcess.start({ args: ['--log-level', 'error'] });
  const { child, webUrl } = bridge;
  const port = Number(new URL(bridge.grpcUrl).port);
  await expectServed(port);
  let next = BUDGET.first;
  const playAll = async () => {
    while (next < BUDGET.first + BUDGET.bodyCount && child.exitCode === null) {
      const number = next;
      next += SHARE;
      await play(port, randomConnection(messages, new Dice(BUDGET.seed + 2, number)));
      if (number % (SHARE * HONEST_EVERY) !== 0) continue;
      await until('fewer connections', async () => (await connectionCount(webUrl)) < MAX_OPEN, 60_000);
      await expectServed(port);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, playAll));
    await expectServed(port);
  } catch (error) {
    const again = fuzzAgain(next - 2 * SHARE * AT_ONCE, 2 * SHARE * AT_ONCE);
    throw new Error(`${again}\n${bridge.stderr}`, { cause: error });
  }
  await until('the connections to be gone', async () => (await connectionCount(webUrl)) === 0, 60_000);
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  console.log(`${/VmHWM.*/.exec(status)?.[0]}, ${/VmRSS.*/.exec(status)?.[0]}`);
  expect(await bridge.stop(), bridge.stderr).toBe(0);
});

const OTLP_PATHS = ['/v1/traces', '/v1/traces', '/v1/logs', '/v1/metrics', '/healthz', '/'];
const WEB_PATHS = [
  ...['/', '/runs', '/readyz?verbose', '/metrics', '/login', '/openapi.json', '/api/v2/accounts/1/runs/?limit=x'],
  ...['/api/v3/accounts/1/jobs', '/api/v2/accounts/1/runs/1/artifacts/manifest.json', '/api/v2/accounts/1/jobs/1/run/'],
];

it(`no connection of ${BUDGET.bodyCount / HTTP_SHARE} to the ports of HTTP ends the program, or keeps others from being served`, async () => {
  const { traces, logs } = readCorpus();
  const messages = [...traces, ...logs];
  bridge = await BridgeProcess.start({ args: ['--log-level', 'error'] });
  const { child, otlpUrl, webUrl } = bridge;
  const ports = [
    { url: otlpUrl, paths: OTLP_PATHS },
    { url: webUrl, paths: WEB_PATHS },
  ].map((port) => ({ ...port, number: Number(new URL(port.url).port) }));
  const expectAllServed = async () => {
    for (const { url } of ports) expect((await fetch(`${url}/healthz`)).status).toBe(200);
  };
  await expectAllServed();
  let next = BUDGET.first;
  const playAll = async () => {
    while (next < BUDGET.first + BUDGET.bodyCount && child.exitCode === null) {
      const number = next;
      next += HTTP_SHARE;
      const dice = new Dice(BUDGET.seed + 3, number);
      const port = dice.pick(ports);
      await play(port.number, randomHttp1Connection(port.paths, messages, dice));
      if (number % (HTTP_SHARE * HONEST_EVERY) === 0) await expectAllServed();
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, playAll));
    await expectAllServed();
  } catch (error) {
    const again = fuzzAgain(next - 2 * HTTP_SHARE * AT_ONCE, 2 * HTTP_SHARE * AT_ONCE);
    throw new Error(`${again}\n${bridge.stderr}`, { cause: error });
  }
  expect(await bridge.stop(), bridge.stderr).toBe(0);
});

/** What is written is written piece by piece, each in a turn of its own. */
function play(port: number, { pieces, end }: ConnectionPlay): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('connect', async () => {
      for (const piece of pieces) {
        socket.write(piece);
        await sleep(0);
      }
      if (end === 'close') socket.end();
      // What the program does not end is ended here.
      await sleep(end === 'close' || end === 'wait' ? 20 : 0);
      if (end === 'reset') socket.resetAndDestroy();
      else socket.destroy();
    });
    socket.resume();
  });
}

async function expectServed(port: number): Promise<void> {
  const client = new GrpcClient(port);
  try {
    expect(await client.call(frame(paddedBody(100)))).toMatchObject({ code: 0 });
  } finally {
    client.destroy();
  }
}

async function connectionCount(webUrl: string): Promise<number> {
  const answer = await fetch(`${webUrl}/readyz?verbose`);
  const { checks } = (await answer.json()) as { checks: { name: string; details: Record<string, number> }[] };
  return checks.find(({ name }) => name === 'otlp-grpc-receiver')?.details.connectionCount ?? Number.NaN;
}
