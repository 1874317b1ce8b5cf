import { Agent } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { send } from '../fake/http-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { SentRun } from '../tool/sent-run.js';

const SENDERS = 8;
/** So many runs are sent before the signal, and more until each sender is told that its connection ends. */
const RUNS_BEFORE = 24;

let bridge: BridgeProcess;
afterEach(() => bridge.remove());

test('SIGTERM under load: what is under way is answered, what was answered 200 is kept, and the exit code is 0', async () => {
  bridge = await BridgeProcess.start();
  const port = Number(new URL(bridge.otlpUrl).port);
  const kept: SentRun[] = [];
  let exitCode: Promise<number | null> | undefined;

  /** Sends on one connection until it is told to end. */
  const sendOn = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let isLast = false; !isLast; ) {
      const run = new SentRun();
      for (const { signal, bytes } of run.bodies) {
        if (isLast) return;
        const headers = { 'Content-Type': 'application/x-protobuf' };
        const answer = await send(port, { path: `/v1/${signal}`, headers, body: bytes, agent });
        expect(answer.status).toBe(200);
        isLast = answer.headers.connection === 'close';
      }
      kept.push(run);
      if (kept.length === RUNS_BEFORE) exitCode = bridge.stop('SIGTERM');
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: SENDERS }, sendOn));

  expect(await exitCode).toBe(0);
  expect(kept.length).toBeGreaterThanOrEqual(RUNS_BEFORE);
  for (const run of kept) {
    expect(run.compare(bridge.runFolder(run.traceId))).toEqual({ missingCount: 0, addedCount: 0 });
  }
  expect(bridge.stderr).not.toContain('not everything ended cleanly');
});
